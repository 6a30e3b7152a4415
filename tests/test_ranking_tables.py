"""The tables of docs/unified.md: what their scripts make of runs."""

import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from tests.conftest import ROOT

EXPERIMENTS = str(ROOT / "experiments")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("ranking_tables")


def rows(kind: str, system: str, recalls: Sequence[float | None], within: Sequence[float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "kind": kind,
            "system": system,
            "query_id": [f"q{number}" for number in range(len(recalls))],
            "recall@10": pl.Series(recalls, dtype=pl.Float64),
            "recall@2000t": pl.Series(within, dtype=pl.Float64),
        }
    )


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_what_no_question_has_is_left_open_and_what_one_lacks_leaves_it_out(tables: ModuleType) -> None:
    before, now = [1.0, 0.0, 0.5], [1.0, 1.0, None]
    found = pl.concat([rows("locomo", "before", before, [None] * 3), rows("locomo", "now", now, [0.5, 0.5, 0.5])])
    _, _, *told = map(cells, tables.means(found, ["recall@10", "recall@2000t"]))
    assert told[0] == ["locomo", "before", "3", ".500 [.000 1.000]", "–"]
    assert told[1] == ["locomo", "now", "2", "1.000 [1.000 1.000]", ".500 [.500 .500]"]


def test_differences_are_paired_by_question(tables: ModuleType) -> None:
    found = pl.concat([rows("beam", "one", [0.0, 0.5], [None, None]), rows("beam", "other", [1.0, 0.75], [1.0, 1.0])])
    _, _, line = map(cells, tables.differences(found, ["recall@10", "recall@2000t"], "one"))
    assert line == ["beam", "other", "2", "+.625 [+.250 +1.000]", "–"]  # (1 + .25) / 2


def test_the_best_of_several_stands_for_them_in_each_kind(tables: ModuleType) -> None:
    found = pl.concat(
        rows(kind, system, [recall], [recall])
        for kind, recalls in {
            "beam": {"bm25": 0.4, "ours": 0.1, "dense": 0.5},
            "qmsum": {"bm25": 0.3, "dense": 0.2},
        }.items()
        for system, recall in recalls.items()
    )
    left = tables.with_best(found, {"plain": ["bm25", "dense"]})
    assert left.select("kind", "system", "recall@10").rows() == [
        ("beam", "ours", 0.1),
        ("beam", "plain: dense", 0.5),
        ("qmsum", "plain: bm25", 0.3),
    ]


def test_a_group_is_told_of_when_all_its_kinds_are_there(tables: ModuleType) -> None:
    kinds = importlib.import_module("talk_kinds").AGENT_QUESTIONS
    every = pl.concat(rows(kind, "ours", [0.5], [0.5]) for kind in ("beam", *kinds))
    assert tables.with_groups(every)["kind"].to_list() == ["beam", *kinds, *["agents together"] * len(kinds)]
    some = every.filter(pl.col("kind") != kinds[0])
    assert tables.with_groups(some).equals(some)


def test_a_file_gives_each_kind_its_own_overrides(tables: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "left_out.json"
    file.write_text(json.dumps({"beam": ["++fusion.weights={words:1}"]}))
    tried = tables.Tried("left out", ["system=unified", f"@{file}"])
    assert tried.made_by("beam") == ["system=unified", "++fusion.weights={words:1}"]
    with pytest.raises(tables.LcmError, match=r"left_out\.json has no overrides for 'qmsum', only for: beam"):
        tried.made_by("qmsum")


def test_runs_that_are_not_there_leave_their_row_out(tables: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "beam").mkdir()
    (tmp_path / "beam" / "summary.json").write_text("{}")
    recorded = tables.Recorded("before", tmp_path)
    assert recorded.run("beam", tmp_path, "none") == tmp_path / "beam"
    assert recorded.run("qmsum", tmp_path, "none") is None
