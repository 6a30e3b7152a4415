"""The report of the gate as JUnit XML: a test case for each gated measure of each group."""

import re
from xml.etree import ElementTree as Xml

from eval.regression.gate import GatedComparison
from eval.regression.wording import headline, sentence

_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(comparison: GatedComparison, at: str) -> str:
    """A failure where a row regressed, skipped where it cannot be told.

    Args:
        at: when, as 2026-01-31T12:00:00.
    """
    rows = list(comparison.rows.drop_nulls("gate").iter_rows(named=True))
    counts = {
        "tests": str(len(rows)),
        "failures": str(sum(row["gate"] == "regressed" for row in rows)),
        "errors": "0",
        "skipped": str(sum(row["gate"] == "cannot tell" for row in rows)),
        "time": "0",
    }
    suites = Xml.Element("testsuites", {"name": "lcm regress", **counts})
    suite = Xml.SubElement(
        suites, "testsuite", {"name": "lcm regress", **counts, "timestamp": at, "hostname": "localhost"}
    )
    properties = Xml.SubElement(suite, "properties")
    said = {
        "gate": comparison.gate,
        "baseline": comparison.baseline.name,
        "candidate": comparison.candidate.name,
        "dataset": comparison.baseline.summary["dataset"]["name"],
        "dataset_digest": comparison.baseline.summary["dataset"]["digest"],
    }
    if "generated" in comparison.baseline.summary["dataset"]:
        said["generated_questions"] = comparison.baseline.summary["dataset"]["generated"]
    for name, value in said.items():
        Xml.SubElement(properties, "property", {"name": name, "value": _writable(value)})
    for row in rows:
        names = {"classname": f"lcm.regress.{_writable(row['group'])}", "name": row["measure"], "time": "0"}
        case = Xml.SubElement(suite, "testcase", names)
        if row["gate"] == "regressed":
            failure = Xml.SubElement(case, "failure", {"message": _writable(sentence(row)), "type": "regressed"})
            failure.text = _writable(sentence(row))
        elif row["gate"] == "cannot tell":
            Xml.SubElement(case, "skipped", {"message": _writable(sentence(row))})
    Xml.SubElement(suite, "system-out").text = _writable("\n".join([headline(comparison), *comparison.notes]))
    Xml.SubElement(suite, "system-err").text = ""
    Xml.indent(suites)
    text: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _writable(text: str) -> str:
    """Without what XML cannot hold."""
    return _UNWRITABLE.sub("?", text)
