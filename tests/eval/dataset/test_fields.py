"""Records of files: what is wrong is told in one line with file, record and key."""

from pathlib import Path

import pytest

from eval.dataset.files import Record, csv_rows, json_lines, parsed, whole_number
from lcm.errors import DatasetError
from tests.eval.dataset.refusals import misread

RECORD = Record("val.jsonl: record 3", {"text": "words", "number": 4, "list": [{"a": 1}, {"a": 2}], "null": None})


def test_values_of_the_asked_kind_are_given() -> None:
    assert RECORD.get("text", str) == "words"
    assert RECORD.get("number", int) == 4
    assert RECORD.find("text", str) == "words"
    assert RECORD.find("null", str) is RECORD.find("nothing", str) is None
    assert list(RECORD.each("list")) == [
        Record("val.jsonl: record 3: list[0]", {"a": 1}),
        Record("val.jsonl: record 3: list[1]", {"a": 2}),
    ]
    assert Record("x", {"names": ["a", "b"]}).texts("names") == ["a", "b"]


def test_half_a_surrogate_pair_is_replaced_and_a_pair_is_joined() -> None:
    record = Record("x", {"half": "a \ud83d b", "pair": "\ud83d\ude00"})
    assert [record.get(key, str) for key in ("half", "pair")] == ["a \ufffd b", "\U0001f600"]


def test_a_number_has_as_many_digits_as_anything_counts() -> None:
    found = [whole_number(text) for text in ("0", "007", "9" * 18, "9" * 19, "9" * 5000, "", "-1", "1.0", " 1", "x")]
    assert found == [0, 7, 10**18 - 1, *[None] * 7]


def test_what_is_wrong_is_reported_by_file_record_and_key() -> None:
    faults = {
        "val.jsonl: record 3: 'nothing' is missing; the file is damaged, or of another form": lambda: RECORD.get(
            "nothing", str
        ),
        "val.jsonl: record 3: 'null' must be text, got null": lambda: RECORD.get("null", str),
        "val.jsonl: record 3: 'text' must be a whole number, got 'words'": lambda: RECORD.get("text", int),
        "x: 'n' must be a whole number, got True": lambda: Record("x", {"n": True}).get("n", int),
        "'number' must be a list, got 4": lambda: RECORD.get("number", list),
        "x: 'list[1]' must be an object, got 7": lambda: list(Record("x", {"list": [{}, 7]}).each("list")),
        "x: 'list[1]' must be text, got 7": lambda: Record("x", {"list": ["a", 7]}).texts("list"),
    }
    assert [wrong for told, ask in faults.items() for wrong in misread(ask, told)] == []
    with pytest.raises(DatasetError, match="got 'yyyy") as refused:
        Record("x", {"n": "y" * 999}).get("n", int)
    assert len(str(refused.value)) < 200


def test_json_that_is_none_is_told_with_its_file() -> None:
    assert parsed(b"[1]", "a.json") == [1]
    for content in (b"", b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(DatasetError, match=r"^a\.json: is not JSON"):
            parsed(content, "a.json")


def test_lines_are_counted_as_records(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'{"a": 1}\n\n{}')
    assert [record.place for record in json_lines(file)] == ["a.jsonl: record 1", "a.jsonl: record 2"]
    assert [record.place for record in json_lines(file, "b/a")] == ["b/a: record 1", "b/a: record 2"]
    wrong = []
    for lines, told in (
        (b"{}\n{", "a.jsonl: record 2: is not JSON"),
        (b"[1]", "a.jsonl: record 1: must be an object, got [1]"),
        (b" \n", "a.jsonl: holds no record"),
        (b"", "a.jsonl: holds no record"),
    ):
        file.write_bytes(lines)
        wrong += misread(lambda: list(json_lines(file)), told)
    assert wrong == []


def test_rows_of_a_csv_have_every_column(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text('id,words\na,"one\ntwo"\nb,\n')
    rows = list(csv_rows(file, ["id"]))
    assert [dict(row.fields) for row in rows] == [{"id": "a", "words": "one\ntwo"}, {"id": "b", "words": ""}]
    assert [row.place for row in rows] == ["a.csv: record 1", "a.csv: record 2"]
    wrong = []
    for lines, told in (
        ("", "a.csv: has no column 'id'"),
        ("id\n", "a.csv: holds no record"),
        ("name\nx\n", "a.csv: has no column 'id'"),
        ("id,words\na,b\na\n", "a.csv: record 2: 'words' is missing"),
        ("id,words\na,b,c\n", "a.csv: record 1: 'a column' is one too many"),
        ('id,words\na,b\na,"b', "a.csv: is not CSV after record 1"),
    ):
        columns = ["id", "words"] if "words" in lines else ["id"]
        file.write_text(lines)
        wrong += misread(lambda: list(csv_rows(file, columns)), told)  # noqa: B023
    assert wrong == []
