"""`lcm compare`: where sides come from, what is evaluated, and what is said."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import LcmError
from pipelines import cli, compare
from pipelines.steps import sides
from tests.pipelines.conftest import Finished, Lcm
from tests.support.looked_at import NO_CONTEXTS, copied
from tests.support.run_folders import write_run_folder

GOOD = {"recall@10": [1.0] * 40, "tokens@10": [150.0] * 40}
BAD = {"recall@10": [0.0] * 20 + [1.0] * 20, "tokens@10": [100.0] * 40}
QUICK = (
    "with=embedder=hashing",
    "means.resamples=20",
    NO_CONTEXTS,
    "measures.latency.queries=0",
    "tracking=none",
    "report=false",
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in, with two runs."""
    monkeypatch.chdir(tmp_path)
    for name, values in (("good", GOOD), ("bad", BAD)):
        write_run_folder(tmp_path / name, values)
    return tmp_path


def record(folder: Path) -> Any:
    return json.loads((folder / "compare.json").read_text())


def test_two_runs_are_held_against_each_other(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.main(["bad", "good", "into=out", "tracking=none"]) == 0
    said = capsys.readouterr().out
    assert "good against bad\n" in said
    assert "1 good: better by recall@10; worse by tokens@10\n" in said
    assert said.endswith("Page: out/report.html\n")
    assert record(here / "out")["baseline"] == "bad"


def test_on_every_width_a_difference_and_its_interval_stand_side_by_side_or_not_at_all(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = set()
    for width in range(50, 111, 4):
        monkeypatch.setenv("COLUMNS", str(width))
        compare.main(["bad", "good", f"into=out-{width}", "tracking=none", "report=false"])
        (headings,) = re.findall("┃ measure .*", capsys.readouterr().out)
        shown.add(tuple(name in headings for name in ("difference", "interval")))
    assert shown == {(True, True), (False, False)}


def test_json_is_all_that_standard_output_has(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["compare", "bad", "--json", "good", "into=out", "by=tokens@10", "tracking=none"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == record(here / "out")
    assert (told["by"], told["sides"][0]["name"]) == ("tokens@10", "bad")


def test_a_sweep_is_all_its_points_behind_what_they_were_held_against(here: Path) -> None:
    points = [("a", "fusion.k=1", None), ("b", "fusion.k=2", None), ("c", "fusion.k=3", "it failed")]
    for name, values in (("a", BAD), ("b", GOOD), ("base", BAD)):
        write_run_folder(here / "sweep" / name, values)
    told = {
        "kind": "sweep",
        "name": "sweep",
        "points": [dict(zip(("folder", "label", "error"), point, strict=True)) for point in points],
        "best": {
            "folder": "b",
            "label": "fusion.k=2",
            "measure": "recall@10",
            "value": 1.0,
            "baseline": "base",
            "is_default": True,
        },
    }
    (here / "sweep" / "summary.json").write_text(json.dumps(told))
    compare.main(["sweep", "into=out", "tracking=none"])
    assert [one["name"] for one in record(here / "out")["sides"]] == ["fusion.k=2", "default", "fusion.k=1"]
    assert record(here / "out")["baseline"] == "default"
    compare.main(["sweep/0", "sweep/1", "into=numbered", "tracking=none"])
    numbered = {one["name"]: Path(one["folder"]).name for one in record(here / "numbered")["sides"]}
    assert numbered == {"fusion.k=1": "a", "fusion.k=2": "b"}
    for number, why in (("2", "point 2, fusion.k=3, did not finish"), ("3", "sweep has points 0 to 2, no point 3")):
        with pytest.raises(LcmError, match=re.escape(why)):
            compare.main([f"sweep/{number}", "sweep/0", "into=refused", "tracking=none"])
    compare.main(["good", "sweep/a", "sweep", "into=beside", "tracking=none"])
    assert [one["name"] for one in record(here / "beside")["sides"]] == [
        "good", "fusion.k=2", "sweep/a", "default"
    ]  # fmt: skip


def test_what_is_no_run_yet_is_evaluated_once(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    real = sides.evaluated

    def evaluated(config: Any, folder: Path, *rest: Any) -> Any:
        ran.append(folder.name)
        return real(config, folder, *rest)

    monkeypatch.setattr(sides, "evaluated", evaluated)
    first = lcm("compare", "default", "neighbours", "ranking.stages.limit.n=10", "into=one", *QUICK)
    assert first.code == 0, first.stderr
    assert len(ran) == 3
    names = {one["name"]: one for one in record(first.place / "one")["sides"]}
    assert set(names) == {"default", "system=neighbours", "ranking.stages.limit.n=10"}
    again = lcm("compare", "ranking.stages.limit.n=10", "system=neighbours", "into=two", *QUICK)
    assert again.code == 0, again.stderr
    assert len(ran) == 3
    assert record(again.place / "two")["baseline"] == "ranking.stages.limit.n=10"


def test_a_side_is_evaluated_as_the_sweep_beside_it_was_whose_points_are_exported_by_name(
    lcm: Lcm, swept: Finished, tmp_path: Path
) -> None:
    (folder,) = (copied(swept, tmp_path) / "runs" / "sweeps").iterdir()
    best = json.loads((folder / "summary.json").read_text())["best"]
    done = lcm(
        "compare", str(folder), "system=neighbours embedder=hashing", "into=out", "tracking=none", "report=false"
    )
    assert done.code == 0, done.stderr
    assert record(done.place / "out")["baseline"] == "default"
    evaluated = record(done.place / "out")["sides"]
    assert len(evaluated) == 4
    (side,) = [one["folder"] for one in evaluated if "neighbours" in one["name"]]
    assert "budgets: []" in (done.place / side / "config.yaml").read_text()
    refused = lcm("export", str(folder), "to=preset", "target=yaml", "tracking=none")
    number = [one["label"] for one in json.loads((folder / "summary.json").read_text())["points"]].index(best["label"])
    assert f"name the point, as {folder}/{number} ({best['label']}, the highest by recall@10)" in refused.stderr
    exported = lcm("export", f"{folder}/{number}", "to=preset", "target=yaml", "tracking=none")
    assert exported.code == 0, exported.stderr
    source = json.loads((exported.place / "preset" / "provenance.json").read_text())["source"]
    assert source["folder"] == f"{folder}/{best['folder']}"
