from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from eval.questions.files import read_file, write_questions
from eval.questions.question import ENDINGS, Evidence, Question
from lcm.errors import DatasetError
from tests.support.read_questions import read_questions

QUESTIONS = (
    Question("q1", "Where, and when?", (Evidence("a:1"), Evidence('[said] so, "there"\nand then')), answer="here"),
    Question(
        "q2",
        "それは何？",
        (Evidence(quote="a, quotation", message_ids=("a:2", "a:3")),),
        asked_at=datetime(2026, 5, 1, 12, tzinfo=UTC),
        category="fact",
        workspace="one",
        generated="known_item",
        source="a/b.jsonl",
        conversations=("a", "b"),
    ),
    Question("q3", "Is there a dog?", (), category="unanswerable"),
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"questions{ending}"
    write_questions(QUESTIONS, path)
    assert read_questions(path) == QUESTIONS


def test_a_spreadsheet_is_read(tmp_path: Path) -> None:
    """With a byte order mark, semicolons and the line ends of another system."""
    path = tmp_path / "questions.csv"
    path.write_bytes(
        b'\xef\xbb\xbfquestion;evidence;notes\r\nWhere?;"the red; door";x\r\n\r\n"a\r\nb";[1];\r\nWho?;[Ann];\r\n'
    )
    read = read_file(path)
    assert [(one.question, one.evidence, one.line) for one in read.questions] == [
        ("Where?", (Evidence("the red; door"),), 2),
        ("Who?", (Evidence("[Ann]"),), 6),
    ]
    (problem,) = read.problems
    assert str(problem).startswith(f"{path}:4: evidence 1 must be an id, file:line or a quotation, or ")
    assert str(problem).endswith("got int 1")
    assert read.unused == ("notes",)


def test_columns_of_parquet_may_hold_lists_and_instants(tmp_path: Path) -> None:
    path = tmp_path / "questions.parquet"
    pl.DataFrame(
        {
            "id": [7, 8],
            "query": ["Where?", "When?"],
            "evidence": [["a:1", "a:2"], ["a:3"]],
            "asked_at": [datetime(2026, 1, 2, 3, tzinfo=UTC), None],
        }
    ).write_parquet(path)
    first, second = read_questions(path)
    assert (first.question_id, first.asked_at) == ("7", datetime(2026, 1, 2, 3, tzinfo=UTC))
    assert (second.evidence, second.asked_at) == ((Evidence("a:3"),), None)


def test_a_file_is_refused_for_its_first_wrong_line_and_for_what_stands_twice(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    line = '{"question": "Where?", "evidence": ["x"]}\n'
    named = line.replace("{", '{"id": "q", ')
    for text, told in (
        (
            line + 'nonsense\n{"question": "", "evidence": ["x"]}\n',
            ":2: not JSON: .* \\(and 1 more: `lcm questions check`",
        ),
        (line * 2, ":2: the same question as line 1; give one a question_id"),
        (named + named.replace("Where", "Who"), ":2: question_id 'q' is also that of line 1; rename one"),
    ):
        path.write_text(text)
        with pytest.raises(DatasetError, match=f"questions.jsonl{told}"):
            read_questions(path)
    other = line.replace("Where", "Who")
    path.write_text(line + other)
    found = read_questions(path)
    path.write_text(f"{other}\n{line}")  # a question without an id keeps its own where lines move
    assert read_questions(path) == found[::-1]


def test_a_table_without_a_header_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text("Where?,dawn\nWho?,Ann\nWhen?,noon\n")
    (problem,) = read_file(path).problems
    assert (problem.line, "line 1 must be the header" in problem.text) == (1, True)
    assert problem.text.endswith("no column of it is question: Where?, dawn")
    path.write_text("query,evidence\nWhere?,dawn\n")
    assert [one.question for one in read_questions(path)] == ["Where?"]
