"""Questions files that are damaged, each in one place, about the sessions of `write_sessions`."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

SAID = (
    ("u1", "user", "The spare key of the boat house hangs behind the blue barrel."),
    ("u2", "assistant", "Noted: behind the blue barrel, in the boat house."),
    ("u3", "user", "The alarm code is 4711 and the alarm rings after 30 seconds."),
    ("u4", "assistant", "Noted."),
    ("u5", "user", "The blue barrel is empty since Tuesday."),
    ("u6", "assistant", "Noted."),
    ("u7", "assistant", "Noted!"),
)
GOOD = {"question": "How long until the alarm rings?", "evidence": ["the alarm rings after 30 seconds"]}
ALSO_GOOD = {"question": "What has been empty since Tuesday?", "evidence": ["u5"], "category": "fact"}


class Damaged(NamedTuple):
    """A questions file that must be refused."""

    name: str
    ending: str
    content: bytes
    line: int | None = 2
    """Where it is damaged; None = the file is refused as a whole."""


def write_sessions(folder: Path) -> Path:
    """Two files: one session, and one whose first line is no message."""
    folder.mkdir()
    said = [
        {"id": name, "role": role, "content": text, "created_at": f"2026-01-0{n}T10:00:00Z"}
        for n, (name, role, text) in enumerate(SAID, 1)
    ]
    (folder / "harbour.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in said))
    other = {"conversation_id": "shop", "messages": [{"id": "s1", "role": "user", "content": "Buy rope and tar."}]}
    (folder / "shop.jsonl").write_text(f"{json.dumps(other)}\n")
    return folder


def lines(*records: object) -> bytes:
    return b"".join(_line(record) for record in records)


def damaged_files() -> Iterator[Damaged]:
    for name, record in _records():
        yield Damaged(name, ".jsonl", lines(GOOD, record, ALSO_GOOD))
        if isinstance(record, dict) and all(isinstance(value, str) and value for value in record.values()):
            yield Damaged(f"{name}, as CSV", ".csv", _csv(record), 3)
    yield from _jsonl()
    yield from _of_csv()
    yield from _of_parquet()


def _line(record: object) -> bytes:
    return (record if isinstance(record, bytes) else json.dumps(record).encode()) + b"\n"


def _records() -> Iterator[tuple[str, Any]]:
    """A line that is JSON and no question, or a question whose evidence is wrong."""
    asked = {"question": "Where is the key?"}
    for value in ("", "  ", None, 7, True, [], ["a"], {}, "x" * 10_001, "a\x00b", "half \ud83d"):
        yield f"question {value!r:.20}", {"question": value, "evidence": ["u1"]}
    evidences: list[Any] = [
        *("", " ", None, 7, 7.5, True, [], [""], [" "], [7], [None], [True], [[]], [["u1"]], {}, [{}], "4711", "30"),
        *([{"quote": ""}], [{"quote": 7}], [{"quote": None}], [{"quotes": "blue"}], [{"message_id": ""}]),
        *([{"message_ids": []}], [{"message_ids": "", "quote": ""}], [{"message_ids": [7.5]}], [{"file": "a"}]),
        *(["u1", ""], ["u1", "no such words in any message"], ["u1", {"message_id": "u99"}], ["u1\x00"]),
        *([{"quote": "half \udc00"}], ["x" * 100_001]),
    ]
    for value in evidences:
        yield f"evidence {value!r:.40}", asked | {"evidence": value}
    for name in (
        *("u8", "u0", "U1", "harbour:u9", "harbor:u1", "harbour:8", "shop:u1", "msg#3", "msg#0", "u", "uu1", "u1 u2"),
        *("00000000-0000-4000-8000-000000000000", "harbour:00000000-0000-4000-8000-000000000000"),
        *("harbour.jsonl:0", "harbour.jsonl:8", "harbour.jsonl:999999", "harbor.jsonl:1", "nowhere/harbour.jsonl:1"),
        *("shop.jsonl:2", "bour.jsonl:1", "harbour.jsonl:one", "harbour.jsonl:-1"),
    ):
        yield f"id {name}", asked | {"evidence": [name]}
        yield f"object id {name}", asked | {"evidence": [{"message_id": name}]}
        yield f"message_ids {name}", asked | {"evidence": ["u1"], "message_ids": ["u1", name]}
    for quote in (
        *("Noted", "blue barrel", "The", "e", "arm", "Noted ", "boat house", "behind the blue barrel", " blue ", "o"),
        *(
            "The alarm code is 4712",
            "alarm rings after 31 seconds",
            "The alarm code is 4711 and the alarm rings after 3",
        ),
        *("The red barrel is full since Monday", "Noted?", "the spare boats", "keyboard", "barrel. Noted", "NOTED"),
        *("rope & tar", "the anchor is under the stairs", "青い樽の後ろにある鍵", "Empty since Tuesday, the barrel is"),
    ):
        yield f"quotation {quote}", asked | {"evidence": [quote]}
        yield f"object quotation {quote}", asked | {"evidence": [{"quote": quote}]}
    yield "quotation that the message does not hold", asked | {"evidence": [{"quote": "rope", "message_ids": ["u1"]}]}
    yield "quotation that one of two holds", asked | {"evidence": [{"quote": "4711", "message_ids": ["u3", "u1"]}]}
    for value in ("yesterday", "2026-13-01", "2026-01-01T99:00Z", "1e99", True, [], {}, "1823-01-01", "2999-01-01", -5):
        yield f"asked_at {value!r}", asked | {"evidence": ["u1"], "asked_at": value}
    yield "asked before it was said", asked | {"evidence": ["u3"], "asked_at": "2026-01-02T10:00:00Z"}
    for key in ("workspace", "source", "conversation"):
        for value in ("nowhere", "harbor", 7, {}, "x" * 100_001):
            yield f"{key} {value!r:.20}", asked | {"evidence": ["u1"], key: value}
    yield "evidence beside its source", asked | {"evidence": ["u1"], "source": "shop.jsonl"}
    yield "evidence beside its conversation", asked | {"evidence": ["u1"], "conversation": "shop"}
    for key in ("evidnce", "questions", "Evidence ", "questoin", "asked-at", "awnser", "work_space"):
        yield f"key {key}", asked | {"evidence": ["u1"], key: "x"}
    for value in (1, "yes", "perhaps", [], None):
        yield f"unanswerable {value!r}", asked | {"evidence": [], "unanswerable": value}
    yield "unanswerable with evidence", asked | {"evidence": ["u1"], "unanswerable": True}
    yield "unanswerable category with evidence", asked | {"evidence": ["u1"], "category": "unanswerable"}
    for key in ("category", "answer", "generated", "question_id"):
        for value in ({}, [1], 7.5, True, "a\x00b"):
            yield f"{key} {value!r}", asked | {"evidence": ["u1"], key: value}
    yield "question twice", asked | {"evidence": ["u1"], "text": "Where?"}
    for value in ("text", 7, None, True, [], [asked], 1.5):
        yield f"a line that is {value!r:.20}", value


def _jsonl() -> Iterator[Damaged]:
    whole = _line({"question": "Where is the key?", "evidence": ["u1"], "question_id": "q"})
    for end in range(1, len(whole) - 2, 2):
        yield Damaged(f"cut after {end}", ".jsonl", lines(GOOD) + whole[:end] + b"\n" + lines(ALSO_GOOD))
    yield Damaged("the same question", ".jsonl", lines(GOOD, GOOD))
    same = {"question_id": "q1"}
    yield Damaged("the same id", ".jsonl", lines(GOOD | same, ALSO_GOOD | same))
    yield Damaged("a key twice", ".jsonl", lines(GOOD, b'{"question": "a?", "evidence": ["u1"], "evidence": ["u2"]}'))
    yield Damaged("two objects", ".jsonl", lines(GOOD, whole.strip() + whole.strip()))
    yield Damaged("deep", ".jsonl", lines(GOOD, b"[" * 100_000))
    yield Damaged("a number of a million digits", ".jsonl", lines(GOOD, b'{"question": ' + b"7" * 10**5 + b"}"))
    for size in (2 * 2**20, 10 * 2**20):
        yield Damaged(f"{size} bytes", ".jsonl", lines(GOOD, {"question": "x" * size, "evidence": ["u1"]}))
        yield Damaged(f"{size} spaces", ".jsonl", lines(GOOD) + b" " * size + whole)
    yield Damaged("NUL bytes", ".jsonl", lines(GOOD, b"\x00" * 50))
    yield Damaged("NUL in text", ".jsonl", lines(GOOD, whole.strip().replace(b"key", b"k\x00y")))
    text = '{"question": "Où est la clé?", "evidence": ["u1"]}'
    for encoding in ("latin-1", "cp1252", "cp850", "utf-16-le", "utf-16-be", "utf-32-le", "utf-7"):
        told = text if encoding != "utf-7" else text.replace("u1", "ü1")
        yield Damaged(encoding, ".jsonl", lines(GOOD) + told.encode(encoding) + b"\n")
    for encoding in ("utf-16", "utf-32"):
        yield Damaged(f"whole file in {encoding}", ".jsonl", f"{text}\n".encode(encoding), 1)
    yield Damaged("cut within a character", ".jsonl", lines(GOOD) + text.encode()[: text.index("ù") + 1])
    yield Damaged("gzip", ".jsonl", b"\x1f\x8b\x08\x00" + bytes(range(256)), 0)
    yield Damaged("an array", ".jsonl", json.dumps([GOOD, ALSO_GOOD], indent=1).encode(), 1)
    for name, content in (("empty", b""), ("blank", b"\n \n\r\n"), ("a byte order mark alone", b"\xef\xbb\xbf")):
        yield Damaged(name, ".jsonl", content, None)
        yield Damaged(f"{name} table", ".csv", content, None)
        yield Damaged(f"{name} Parquet", ".parquet", content, None)
    yield Damaged("another kind", ".txt", lines(GOOD), None)
    yield Damaged("a session", ".jsonl", lines({"role": "user", "content": "Hello"}), 1)


def _csv(record: dict[str, str]) -> bytes:
    frame = pl.DataFrame([GOOD | {"evidence": "u3"}, record], strict=False, infer_schema_length=None)
    return frame.select(pl.all().cast(pl.String)).write_csv().encode()


def _of_csv() -> Iterator[Damaged]:
    head, good = b"question,evidence\n", b"How long?,u3\n"
    for name, row in {
        "a field more": b"Where, exactly, is it?,u1\n",
        "a field less": b"Where?\n",
        "an open quote": b'"Where?,u1\nWho?,u2\n',
        "text behind a quote": b'"Where?"x,u1\n',
        "latin-1": "Où?,u1\n".encode("latin-1"),
        "NUL": b"Where?,u1\x00\n",
        "no evidence": b"Where?,\n",
        "no question": b",u1\n",
        "a long field": b"Where?," + b"x" * 200_000 + b"\n",
        "JSON of numbers": b"Where?,[1]\n",
    }.items():
        yield Damaged(f"CSV: {name}", ".csv", head + good + row, 3)
    yield Damaged("CSV: no header", ".csv", good + good, None)
    yield Damaged("CSV: a column twice", ".csv", b"question,evidence,evidence\nHow long?,u3,u3\n", 1)
    yield Damaged("CSV: a misspelt column", ".csv", b"question,evidense\nHow long?,u3\n", 2)
    yield Damaged("CSV: UTF-16", ".csv", (head + good).decode().encode("utf-16"), 1)


def _of_parquet() -> Iterator[Damaged]:
    columns: dict[str, list[Any]] = {
        "question": [1, 2],
        "evidence": [1.5, 2.5],
        "asked_at": [True, False],
        "category": [[1], [2]],
        "message_ids": [[1.5], [2.5]],
        "workspace": [b"a", b"b"],
        "answer": [{"a": 1}, {"a": 2}],
    }
    good = {"question": ["How long?", "Who?"], "evidence": [["u3"], ["u1"]]}
    for key, values in columns.items():
        yield Damaged(f"Parquet: {key}", ".parquet", _parquet(good | {key: values}), 1)
    yield Damaged("Parquet: no evidence", ".parquet", _parquet({"question": ["How long?"]}), 1)
    yield Damaged("Parquet: null", ".parquet", _parquet(good | {"evidence": [["u3"], None]}), 2)
    yield Damaged("Parquet: no row", ".parquet", _parquet({"question": pl.Series([], dtype=pl.String)}), None)
    whole = _parquet(good)
    for end in range(0, len(whole), len(whole) // 8):
        yield Damaged(f"Parquet: cut after {end}", ".parquet", whole[:end], None)
    yield Damaged("Parquet: text", ".parquet", lines(GOOD), None)


def _parquet(columns: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()
