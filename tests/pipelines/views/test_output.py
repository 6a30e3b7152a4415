"""Every command answers a program with one JSON document, and says no more than where its result lies when asked so."""

import json
from pathlib import Path

import pytest

from pipelines.cli import PIPELINES
from pipelines.views.output import as_json
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.looked_at import NO_CONTEXTS, SHOWN, SWEPT, copied

MESSAGES = [
    {"role": "user", "content": "The cat is called Mia.", "timestamp": "2024-05-01T10:00:00Z"},
    {"role": "assistant", "content": "Noted.", "timestamp": "2024-05-01T10:00:05Z"},
]
LOOKS = {
    "cache": (), "datasets": (), "status": ("store=a.db",), "journal": ("store=a.db",), "doctor": ("a.db",),
    "grep": ("Mia", "store=a.db"),
}  # fmt: skip
"""Commands that make nothing, with arguments that suffice."""


@pytest.fixture
def here(tmp_path: Path, lcm: Lcm) -> Path:
    """A folder with a transcript and a store of it."""
    place = tmp_path / "here"
    place.mkdir()
    (place / "a.jsonl").write_text("\n".join(map(json.dumps, MESSAGES)))
    assert lcm("ingest", "a.jsonl", "into=a.db").code == 0
    return place


def test_help_is_json_for_a_program(lcm: Lcm) -> None:
    for name in PIPELINES:
        done = lcm(name, "--help", "--json")
        assert done.code == 0
        assert any(f"lcm {name}" in line for line in json.loads(done.stdout)["lines"])


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_is_one_document(name: str, lcm: Lcm, here: Path) -> None:
    done = lcm(name, *LOOKS[name], "--json")
    assert done.code == 0, done.stderr
    assert json.loads(done.stdout) is not None
    assert done.stderr == ""
    quiet = lcm(name, *LOOKS[name], "--quiet")
    assert (quiet.code, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_run_is_its_summary_and_of_a_quiet_one_the_folder_alone_is_left(lcm: Lcm) -> None:
    quick = ("evaluate", *QUICK, NO_CONTEXTS)
    done = lcm(*quick, "--json", place="json")
    assert json.loads(done.stdout) == {"folder": str(done.folder.relative_to(done.place)), **done.summary}
    done = lcm(*quick, "--quiet")
    assert (done.stdout, done.stderr) == (f"{done.folder.relative_to(done.place)}\n", "")


def test_what_lies_below_the_current_folder_is_told_from_there(lcm: Lcm, evaluated: Finished, tmp_path: Path) -> None:
    assert evaluated.stdout.endswith("Kept: runs/first\nPage: runs/first/report.html\n")
    done = lcm("evaluate", *SHOWN, f"hydra.run.dir={tmp_path}/elsewhere")
    assert done.stdout.endswith(f"Kept: {tmp_path}/elsewhere\nPage: {tmp_path}/elsewhere/report.html\n")


def test_a_quiet_gate_says_the_folder_of_its_page(lcm: Lcm, regressed: Finished) -> None:
    run = str(regressed.place / "second")
    assert lcm("regress", run, run, "into=gate", "tracking=none", "report=false", "--quiet").stdout == "gate\n"
    assert (regressed.place / "gate" / "report.html").is_file()


def test_a_quiet_sweep_says_its_folder(lcm: Lcm, swept: Finished, tmp_path: Path) -> None:
    place = copied(swept, tmp_path)
    done = lcm("evaluate", "-m", *SWEPT, "--quiet")
    assert done.code == 0
    assert (place / done.stdout.strip() / "sweep.md").is_file()
    told = json.loads(lcm("evaluate", "-m", *SWEPT, "--json").stdout)
    assert [point["label"] for point in told["points"]] == ["fusion.dense_weight=0.2", "fusion.dense_weight=0.4"]


def test_a_store_that_was_made_is_told(lcm: Lcm, here: Path) -> None:
    assert json.loads(lcm("ingest", "a.jsonl", "into=b.db", "--json").stdout)["made"] == "b.db"
    assert lcm("ingest", "a.jsonl", "into=c.db", "--quiet").stdout == "c.db\n"


def test_an_error_is_a_document_too(lcm: Lcm) -> None:
    for asked, why in ((("evalute",), "no such pipeline"), (("regress", "nowhere", "tracking=none"), "no such folder")):
        done = lcm(*asked, "--json")
        told = json.loads(done.stdout)
        assert (done.code, told["exit_code"]) == (2, 2)
        assert why in told["error"]
        assert done.stderr == f"lcm: {told['error']}\n"
        assert lcm(*asked).stdout == ""


def test_what_is_no_number_is_null_for_a_program() -> None:
    assert json.loads(as_json({"a": [float("nan"), float("inf"), 0.1]})) == {"a": [None, None, 0.1]}
    assert "NaN" not in as_json(float("nan"))


def test_a_table_is_columns_and_rows(lcm: Lcm, here: Path) -> None:
    table = json.loads(lcm("doctor", "a.db", "--json").stdout)["tables"][0]
    assert len({len(row) for row in [table["columns"], *table["rows"]]}) == 1
    assert {type(row[table["columns"].index("found")]) for row in table["rows"]} == {int}
