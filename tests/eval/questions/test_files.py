from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from eval.questions.files import read_file, read_questions, write_questions
from eval.questions.question import ENDINGS, Evidence, Question
from lcm.errors import DatasetError

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


def test_a_question_without_an_id_keeps_its_own_where_lines_move(tmp_path: Path) -> None:
    lines = ['{"question": "Where?", "evidence": ["x"]}\n', '{"question": "Who?", "evidence": ["y"]}\n']
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    one.write_text("".join(lines))
    other.write_text("\n".join(reversed(lines)))
    assert read_questions(one) == read_questions(other)[::-1]


def test_one_wrong_line_refuses_the_file_and_says_how_many_are_wrong(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": "Where?", "evidence": ["x"]}\nnonsense\n{"question": "", "evidence": ["x"]}\n')
    with pytest.raises(DatasetError, match=r"questions.jsonl:2: not JSON: .* \(and 1 more: `lcm questions check`"):
        read_questions(path)


def test_the_same_question_twice_is_told_as_such_unless_its_ids_were_given(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    line = '{"question": "Where?", "evidence": ["x"]}\n'
    path.write_text(line * 2)
    with pytest.raises(DatasetError, match=r"questions.jsonl:2: the same question as line 1; give one a question_id"):
        read_questions(path)
    path.write_text(line.replace("{", '{"id": "q", ') + line.replace("{", '{"id": "q", ').replace("Where", "Who"))
    with pytest.raises(DatasetError, match=r":2: question_id 'q' is also that of line 1; rename one"):
        read_questions(path)


def test_a_table_without_a_header_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text("Where?,dawn\nWho?,Ann\nWhen?,noon\n")
    (problem,) = read_file(path).problems
    assert (problem.line, "line 1 must be the header" in problem.text) == (1, True)
    assert problem.text.endswith("no column of it is question: Where?, dawn")
    path.write_text("query,evidence\nWhere?,dawn\n")
    assert [one.question for one in read_questions(path)] == ["Where?"]
