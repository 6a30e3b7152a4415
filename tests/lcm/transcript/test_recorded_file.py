"""Files of any shape as a stream of values; every line is given, blank, or put aside."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lcm.errors import TranscriptError
from lcm.transcript import recorded_file
from lcm.transcript.reading import reader_of
from lcm.transcript.recorded_file import QuarantinedLines, RecordedFile
from tests.support.packing import PACKINGS


def written(tmp_path: Path, content: str | bytes, name: str = "f.jsonl") -> RecordedFile:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return RecordedFile(path)


def test_lines_are_values_and_bad_ones_are_put_aside(tmp_path: Path) -> None:
    content = b'{"a":1}\n\n  \r\n{"a":\n\xff\xfe\n7\n"NUL \x00"\n[' + b"9" * 5000 + b']\n{"b":2}'
    file = written(tmp_path, content)
    assert list(file.values()) == [(1, {"a": 1}), (6, 7), (9, {"b": 2})]
    assert [(line, last, reason.partition(" (")[0]) for _, line, last, reason in file.quarantine] == [
        (4, 4, "not JSON: Expecting value"),
        (5, 5, "not UTF-8 text: invalid start byte"),
        (7, 7, "not JSON: Invalid control character at"),
        (8, 8, "JSON beyond what can be read: Exceeds the limit"),
    ]
    assert str(file.quarantine[0]).startswith(f"{file.path}:4: not JSON")
    assert str(QuarantinedLines(file.path, 4, None, "why")) == f"{file.path}:4-end: why"
    assert str(QuarantinedLines(file.path, 4, 9, "why")) == f"{file.path}:4-9: why"


@pytest.mark.parametrize(
    ("content", "shape", "values"),
    [
        ('{"a":1}', "lines", [{"a": 1}]),
        ('{"a":1}\n{"b":2}', "lines", [{"a": 1}, {"b": 2}]),
        ('{"a":\n1}', "document", [{"a": 1}]),
        ('{\n"a": [1,\n2], "b": []}', "document", [{"a": [1, 2], "b": []}]),
        ('[{"a":1},{"b":2}]', "document", [{"a": 1}, {"b": 2}]),
        ('[\n{"a":1},\n{"b":2}\n]', "document", [{"a": 1}, {"b": 2}]),
        ('\ufeff[{"a":1},\n{"b":2}]', "document", [{"a": 1}, {"b": 2}]),
        ('\ufeff{"a":1}\n', "lines", [{"a": 1}]),
        ('{"cut": "of\n{"a":1}\n{"b":2}', "lines", [{"a": 1}, {"b": 2}]),
        ('[[[[\n{"a":1}\n{"b":2}', "lines", [{"a": 1}, {"b": 2}]),
        ('\n\noops\n{"a":1}', "lines", [{"a": 1}]),
        ("", "lines", []),
        ("# Notes", "lines", []),
    ],
)
def test_lines_and_documents_are_told_apart(tmp_path: Path, content: str, shape: str, values: list) -> None:
    file = written(tmp_path, content)
    assert file.shape == shape
    assert [value for _, value in file.values()] == values


def test_a_document_gives_its_first_elements_and_all_in_order(tmp_path: Path) -> None:
    document = {"a": list(range(9)), "b": {"c": []}, "d": []}
    file = written(tmp_path, json.dumps(document, indent=1))
    assert file.first == {"a": [0, 1, 2], "b": {"c": []}, "d": []}
    assert [member.value for member in file.members() if member.is_element] == list(range(9))
    assert written(tmp_path, json.dumps([*range(9)])).first == [0, 1, 2]


def test_a_damaged_document_is_put_aside_from_there(tmp_path: Path) -> None:
    file = written(tmp_path, '[\n{"a":1},\n{"b":\n')
    assert [value for _, value in file.values()] == [{"a": 1}]
    ((_, line, last, reason),) = file.quarantine
    assert (line, last) == (2, None)
    assert reason.startswith("after the last value that could be read: not JSON")
    file = written(tmp_path, b'[\n{"a":1},\n"\xff"]')
    assert [value for _, value in file.values()] == [{"a": 1}]
    assert "not UTF-8" in file.quarantine[0].reason


def test_of_a_key_that_stands_twice_the_list_is_read(tmp_path: Path) -> None:
    file = written(tmp_path, '{\n"a": "x",\n"a": [1, 2]\n}')
    assert file.first == {"a": [1, 2]}
    assert list(file.values()) == [(1, {"a": [1, 2]})]


@pytest.mark.parametrize("pack", PACKINGS.values(), ids=PACKINGS)
def test_what_is_packed_is_known_by_content_and_a_torn_one_is_put_aside_from_the_tear(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    lines = [json.dumps({"n": n, "noise": str(hash(n * 7919)) * 20}) for n in range(2000)]
    packed = pack("\n".join(lines).encode())
    assert len(list(written(tmp_path, packed).values())) == 2000
    torn = written(tmp_path, packed[: len(packed) // 2])
    read = list(torn.values())
    assert 0 < len(read) < 2000
    (quarantined,) = torn.quarantine
    assert (quarantined.line, quarantined.last_line) == (len(read) + 1, None)
    assert "cannot be read" in quarantined.reason


@pytest.mark.parametrize("pack", [bytes, *PACKINGS.values()], ids=["plain", *PACKINGS])
@pytest.mark.parametrize("layout", ["lines", "document"])
def test_of_a_file_as_much_is_read_as_was_taken_of_it(tmp_path: Path, pack: Callable[..., bytes], layout: str) -> None:
    values = [{"n": random.Random(n).randbytes(2000).hex()} for n in range(1000)]
    text = "\n".join(map(json.dumps, values)) if layout == "lines" else json.dumps(values, indent=1)
    content = pack(text.encode())
    file = written(tmp_path, content)
    shares = [file.size_read / len(content) for _ in file.values()]
    assert shares == sorted(shares)
    assert [shares[at] for at in (249, 499, 749)] == pytest.approx([0.25, 0.5, 0.75], abs=0.15)
    assert file.size_read == len(content)


def test_a_line_without_end_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_file, "MAX_LINE_BYTES", 2**20)
    long = '{"a":"' + "x" * (3 * 2**20) + '"}'
    file = written(tmp_path, f'{{"a":1}}\n{long}\n{{"b":2}}')
    assert list(file.values()) == [(1, {"a": 1}), (3, {"b": 2})]
    assert [(line, reason) for _, line, _, reason in file.quarantine] == [(2, "a line of more than 1 MiB")]


def test_of_a_document_a_value_too_long_is_put_aside_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lcm.transcript.json_scanner.MAX_VALUE_CHARACTERS", 2**17)
    monkeypatch.setattr(recorded_file, "_CHUNK_BYTES", 2**10)
    said, long = {"role": "user", "content": "a"}, {"role": "user", "content": "x" * 2**19}
    file = written(tmp_path, json.dumps([long, said], indent=1))
    assert (file.first, list(file.values())) == ([said], [(6, said)])
    told = "a value of more than 16 Mi characters"
    assert [(first, last, reason) for _, first, last, reason in file.quarantine] == [(2, 2, told)]
    with pytest.raises(TranscriptError, match=r"begins with a value of more than 16 Mi characters, which is not read"):
        reader_of(written(tmp_path, json.dumps({"messages": long}, indent=1)))


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"nowhere\.jsonl: cannot be read: .*No such file"):
        _ = RecordedFile(tmp_path / "nowhere.jsonl").first
    with pytest.raises(TranscriptError, match=r"cannot be read: .*directory"):
        _ = RecordedFile(tmp_path).first


@pytest.mark.parametrize(
    ("name", "stem"), [("a.b.jsonl.gz", "a.b"), ("a.jsonl.zst", "a"), ("x.traj", "x"), ("plain", "plain")]
)
def test_the_name_is_without_endings(name: str, stem: str) -> None:
    assert RecordedFile(Path("/somewhere") / name).name == stem
