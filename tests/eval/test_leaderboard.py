"""What stands on a leaderboard together, in which order, and what has no number."""

from pathlib import Path
from typing import Any

import pytest

from eval.leaderboard import Leaderboard, read_board
from eval.report.leaderboard_page import leaderboard_page
from eval.report.page import rendered
from eval.table import Table
from lcm.errors import LcmError
from tests.support.run_folders import write_run_folder

TOY = {"name": "toy", "protocol": "as is", "digest": "a" * 64}


def entry(value: float | None, n: int = 2) -> dict[str, Any]:
    bounds = {"low": None, "high": None} if value is None else {"low": value - 0.1, "high": value + 0.1}
    return {"value": value, "n": n, **bounds}


def run(folder: Path, value: float | None = 0.5, n: int = 2, system: str = "hybrid", **more: Any) -> Path:
    """A run with one measure and what it costs."""
    summary = {
        "measures": {"recall@10": entry(value, n), "tokens@10": entry(100.0, n)},
        "interval": {"confidence": 0.95},
        "overrides": [f"system={system}", "dataset=toy"],
        "changed": {"system": system},
        **more,
    }
    write_run_folder(folder, {"recall@10": [0.0, 1.0], "tokens@10": [100.0, 100.0]}, **summary)
    (folder / "config.yaml").write_text(f"memory: {{name: {system}}}\n")
    (folder / "environment.json").write_text('{"packages": {"lcm-harness": "0.1.0"}}')
    return folder


def ranks(board: Leaderboard) -> list[list[tuple[int | None, str]]]:
    return [[(row.rank, row.name) for row in table.rows] for table in board.tables]


def test_the_best_stands_first_and_equals_share_their_rank(tmp_path: Path) -> None:
    values = {"a": 0.4, "b": 0.6, "c": 0.4, "d": 0.1}
    board = read_board([run(tmp_path / name, value, system=name) for name, value in values.items()], "recall@10")
    assert ranks(board) == [[(1, "b"), (2, "a"), (2, "c"), (4, "d")]]
    costs = {"x": 300.0, "y": 200.0}
    cheap = [run(tmp_path / name, system=name, measures={"tokens@10": entry(cost)}) for name, cost in costs.items()]
    assert ranks(read_board(cheap, "tokens@10")) == [[(1, "y"), (2, "x")]]
    arms = {"arms": {"bm25": {"recall@10": entry(0.3)}}}  # an arm of several runs stands once
    board = read_board([run(tmp_path / "e", **arms), run(tmp_path / "f", 0.6, system="f", **arms)], "recall@10")
    assert ranks(board) == [[(1, "f"), (2, "hybrid"), (None, "arm bm25")]]


@pytest.mark.parametrize(
    "other",
    [
        {"dataset": {**TOY, "digest": "b" * 64}},
        {"dataset": {**TOY, "protocol": "mended"}},
        {"definitions": "2"},
        {"n": 1},
        {"interval": {"confidence": 0.9}},
    ],
    ids=["digest", "protocol", "definitions", "judged questions", "confidence"],
)
def test_what_was_measured_otherwise_is_not_ranked_together(tmp_path: Path, other: dict[str, Any]) -> None:
    board = read_board([run(tmp_path / "a"), run(tmp_path / "b", 0.9, system="other", **other)], "recall@10")
    assert ranks(board) == [[(1, "hybrid")], [(1, "other")]]
    page = rendered(leaderboard_page(board))
    assert "Ranked apart from other runs on toy, which differ in:" in page
    assert "0.500" in page and "0.900" in page


def test_what_did_not_run_has_no_number(tmp_path: Path) -> None:
    """Neither a measure that a run lacks, nor an arm without a value, nor a system on a dataset that it never saw."""
    folders = [
        run(tmp_path / "a", arms={"dense": {"recall@10": entry(None, 0)}, "bm25": {"recall@10": entry(0.7)}}),
        run(tmp_path / "b", system="other", dataset={**TOY, "name": "second", "digest": "b" * 64}),
        run(tmp_path / "c", system="third", measures={"MRR": entry(0.9)}),
        run(tmp_path / "d", None, 0, system="fourth"),
    ]
    board = read_board(folders, "recall@10")
    assert ranks(board) == [[(None, "arm bm25"), (1, "hybrid")], [(1, "other")]]
    assert list(board.unranked.values()) == [
        "third, toy: recall@10 was not measured",
        "fourth, toy: recall@10 was not measured",
    ]
    page = leaderboard_page(board)
    (overview,) = [part for section in page.sections if section.anchor == "overview" for part in section.parts]
    assert isinstance(overview, Table)
    numbers = {row[0]: row[1:] for row in overview.texts()}
    assert numbers == {"hybrid": ["0.500", "-"], "other": ["-", "0.500"], "third": ["-", "-"], "fourth": ["-", "-"]}
    assert "0.000" not in rendered(page)


def test_a_page_tells_the_command_and_escapes_what_it_is_told(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    folders = [run(tmp_path / "a", system=hostile), run(tmp_path / "b", overrides="left out")]
    page = rendered(leaderboard_page(read_board(folders, "recall@10")))
    assert hostile not in page
    assert "lcm evaluate &#39;system=&lt;script&gt;alert(1)&lt;/script&gt;&#39; dataset=toy" in page
    assert "lcm verify FOLDER row=002" in page


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    good = run(tmp_path / "a")
    sweep = write_run_folder(tmp_path / "s", {"MRR": [1.0]}, kind="sweep", name="s", points=[])
    for folders, measure, told in (
        ([good, good / ".." / "a"], "recall@10", "is named twice"),
        ([good], "MAP", r"none of the runs measured MAP: choose of recall@10, tokens@10"),
        ([sweep], "MRR", "is a sweep, not a run"),
    ):
        with pytest.raises(LcmError, match=told):
            read_board(folders, measure)
    (good / "environment.json").unlink()
    with pytest.raises(LcmError, match=r"has no environment\.json"):
        read_board([good], "recall@10")


PARTLY = {"flags": ["external memory mine 1 answered 6 of 9 queries"]}
SILENT = {"flags": ["external memory mine 1 answered none of 9 queries and has no number: reset crashed: no database"]}


def test_one_that_failed_at_questions_stands_last_without_a_rank(tmp_path: Path) -> None:
    arms: dict[str, Any] = {"arms": {"bm25": {"recall@10": entry(0.3, 9)}}}
    partly = run(tmp_path / "b", 0.9, 6, "external", **PARTLY)
    board = read_board([run(tmp_path / "a", n=9), partly], "recall@10")
    assert ranks(board) == [[(1, "hybrid"), (None, "external")]]
    page = rendered(leaderboard_page(board))
    assert "002 external: no value of 3 of 9 questions, so it has no rank" in page
    assert "differ in" not in page
    alone = read_board([run(tmp_path / "c", 0.9, 6, "external", **PARTLY, **arms)], "recall@10")
    assert ranks(alone) == [[(None, "arm bm25"), (None, "external")]], "its arms tell how many questions there are"


def test_one_that_never_ran_says_why(tmp_path: Path) -> None:
    silent = run(tmp_path / "b", None, 0, "external", **SILENT, measures={})
    board = read_board([run(tmp_path / "a"), silent], "recall@10")
    assert list(board.unranked.values()) == [f"external, toy: {SILENT['flags'][0]}"]


def test_tables_of_one_dataset_are_told_apart_by_their_titles(tmp_path: Path) -> None:
    page = leaderboard_page(read_board([run(tmp_path / "a"), run(tmp_path / "b", n=1)], "recall@10"))
    titles = [section.title for section in page.sections if section.anchor.startswith("table")]
    assert titles == [f"toy, {'a' * 16}, queries {n}" for n in (2, 1)]


def test_the_command_that_repeats_a_run_says_whose_code_is_trusted(tmp_path: Path) -> None:
    folder = run(tmp_path / "a")
    memory = "{_target_: eval.external.process.PythonObject, target: mypkg.memory.Mine}"
    config = f"external: {memory}\nother: {{_target_: a.B}}"
    (folder / "config.yaml").write_text(config)
    (one,) = read_board([folder], "recall@10").runs
    assert one.command == "lcm evaluate system=hybrid dataset=toy 'trust=[a,mypkg]'"
