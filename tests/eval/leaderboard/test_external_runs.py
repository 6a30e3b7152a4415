"""An external memory on a leaderboard: what it left without a value gives it neither a rank nor a table of its own."""

from pathlib import Path
from typing import Any

from eval.leaderboard.board import read_board
from eval.report.leaderboard_page import leaderboard_page
from eval.report.page import rendered
from tests.eval.leaderboard.test_board import entry, ranks, run

PARTLY = {"flags": ["external memory mine 1 answered 6 of 9 queries"]}
SILENT = {"flags": ["external memory mine 1 answered none of 9 queries and has no number: reset crashed: no database"]}


def test_one_that_failed_at_questions_stands_last_without_a_rank(tmp_path: Path) -> None:
    board = read_board([run(tmp_path / "a", n=9), run(tmp_path / "b", 0.9, 6, "external", **PARTLY)], "recall@10")
    assert ranks(board) == [[(1, "hybrid"), (None, "external")]]
    page = rendered(leaderboard_page(board))
    assert "002 external: no value of 3 of 9 questions, so it has no rank" in page
    assert "differ in" not in page


def test_its_arms_tell_how_many_questions_there_are(tmp_path: Path) -> None:
    arms: dict[str, Any] = {"arms": {"bm25": {"recall@10": entry(0.3, 9)}}}
    board = read_board([run(tmp_path / "a", 0.9, 6, "external", **PARTLY, **arms)], "recall@10")
    assert ranks(board) == [[(None, "arm bm25"), (None, "external")]]


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
    memory = "{_target_: eval.external.python_object.PythonObject, target: mypkg.memory.Mine}"
    config = f"external: {memory}\nother: {{_target_: a.B}}"
    (folder / "config.yaml").write_text(config)
    (one,) = read_board([folder], "recall@10").runs
    assert one.command == "lcm evaluate system=hybrid dataset=toy 'trust=[a,mypkg]'"
