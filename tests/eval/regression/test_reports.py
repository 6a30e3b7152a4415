"""What a comparison leaves for people, build servers and MLflow."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as Xml

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from eval.regression.regression import GatedComparison, Regression
from eval.regression.report import junit, markdown, write_regression
from tests.support.run_folders import side

LIMITS = {"recall@10": {"tolerance": 0.01, "detectable": 0.05}}
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def compared(folder: Path, text: str = "What?", category: str = "rare") -> GatedComparison:
    """Of 100 queries the 20 of a category lose all; 3 more are too few to tell."""
    both = {"categories": [category] * 20 + ["few"] * 3 + ["often"] * 77, "text": text}
    before = side(folder / "before", {"recall@10": [1.0] * 100}, rankings={"q000": ["m1", "m2"]}, **both)
    after = side(folder / "after", {"recall@10": [0.0] * 21 + [1.0] * 79}, rankings={"q000": ["m2"]}, **both)
    return Regression(measures=LIMITS, resamples=500, changed_queries=2).compare(before, after)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> GatedComparison:
    return compared(tmp_path_factory.mktemp("runs"))


ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "skipped": {"message"},
    "property": {"name", "value"},
}
"""Of JUnit's XSD, those that are written."""


def test_the_junit_report_is_as_its_schema_wants_it(comparison: GatedComparison) -> None:
    """Order of elements, attributes, counts that add up, a time without a zone: the rules of JUnit's XSD."""
    suites = Xml.fromstring(junit(comparison, "2026-01-31T12:00:00").encode())
    assert suites.tag == "testsuites"
    (suite,) = suites
    cases = suite.findall("testcase")
    order = [child.tag for child in suite]
    assert order == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
    for element in suites.iter():
        assert set(element.attrib) == ATTRIBUTES.get(element.tag, set()), element.tag
    for parent in (suites, suite):
        counts = {name: int(parent.attrib[name]) for name in ("tests", "failures", "skipped", "errors")}
        assert counts == {"tests": 4, "failures": 2, "skipped": 1, "errors": 0}
    assert datetime.fromisoformat(suite.attrib["timestamp"]).tzinfo is None
    assert {case.attrib["classname"]: [child.tag for child in case] for case in cases} == {
        "lcm.regress.all": ["failure"],
        "lcm.regress.rare": ["failure"],
        "lcm.regress.few": ["skipped"],
        "lcm.regress.often": [],
    }
    (failure, _) = suites.iter("failure")
    assert failure.attrib["message"].startswith("recall@10: 1.000 -> 0.790, difference -0.210 [")


@given(name=st.text(min_size=1, max_size=20), text=st.text(max_size=30))
def test_any_name_and_text_can_be_reported(comparison: GatedComparison, name: str, text: str) -> None:
    told = replace(
        comparison,
        rows=comparison.rows.with_columns(pl.col("group").replace("rare", name)),
        worse=tuple(replace(query, text=text, category=name) for query in comparison.worse),
    )
    Xml.fromstring(junit(told, "2026-01-31T12:00:00").encode())
    rendered = MarkdownIt("gfm-like", {"linkify": False}).render(markdown(told))
    assert rendered.count("<table>") == 2  # the rows, and the ranking of the one query whose ranking is known
    first = rendered.partition("</table>")[0]
    assert first.count("<tr>") == 1 + told.rows.height
    assert first.count("<td") == 12 * told.rows.height
    assert rendered.count("<details>") == 2


def test_the_markdown_report_says_what_got_worse(tmp_path: Path) -> None:
    lines = markdown(compared(tmp_path, text="Who <b>|</b>?")).splitlines()
    assert lines[0] == "## lcm regress: regressed"
    (whole,) = [line for line in lines if line.startswith("| all |")]
    assert whole.startswith("| all | recall@10 | 100 | 21 | 1.000 | 0.790 | -0.210 | [-0.")
    assert whole.endswith("| .002 | worse | -0.010 | **regressed** |")  # 1 / 501
    assert "<details><summary>q000 (rare): Who &lt;b&gt;|&lt;/b&gt;?</summary>" in lines
    assert "recall@10 1.000 -> 0.000; 1 messages of evidence" in lines
    assert "| 1 | m1 **evidence** | m2 |" in lines
    assert "| 2 | m2 |  |" in lines


def test_the_folder_holds_all_of_it_for_machines(tmp_path: Path, comparison: GatedComparison) -> None:
    settings = {"alpha": 0.05, "measures.recall@10.tolerance": 0.01}
    write_regression(tmp_path, comparison, settings, "a: 1\n", NOW)
    found = json.loads((tmp_path / "report.json").read_text())
    assert (found["gate"], found["exit_code"]) == ("regressed", 1)
    assert [row["group"] for row in found["rows"]] == ["all", "rare", "few", "often"]
    assert found["worse_queries"][0]["baseline"][0] == {
        "document_id": "m1",
        "covers_evidence": True,
        "workspace_id": "w",
        "message_ids": ["m1"],
        "text": None,
    }
    assert pl.read_parquet(tmp_path / "verdict.parquet").equals(comparison.rows)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["kind"] == "regression"
    assert summary["metrics"]["recall@10.difference"] == pytest.approx(-0.21)
    assert summary["metrics"]["category/rare/recall@10.difference"] == -1
    assert "category/few/recall@10.p_holm" not in summary["metrics"]  # not tested
    assert summary["metrics"]["regressed"] == 2
    assert summary["params"]["measures.recall_at_10.tolerance"] == 0.01
    hashes = {f"{name}_config_hash": "0" * 16 for name in ("baseline", "candidate")}
    assert summary["tags"] == {"gate": "regressed", "dataset_digest": "a" * 64, **hashes}


def test_the_summary_comes_last(tmp_path: Path, comparison: GatedComparison, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        write_regression(tmp_path / "out", comparison, {}, "", NOW)
    assert not (tmp_path / "out" / "summary.json").exists()
