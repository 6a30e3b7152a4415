"""What a store holds, counted, and whether it is what its rules say; nothing is changed.

The rules are the checks of `checks.sql`, in its order; those that no query can tell are functions here.

Source: lossless-claw 0.6.3 for the first eight checks and for the marks of summaries that were cut; the others are
ours.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from typing import Any, Literal, NamedTuple

from lcm.encoding import to_json
from lcm.errors import LcmError
from lcm.javascript import utf16_length
from lcm.records.conversation import Message, Part
from lcm.records.summary import FALLBACK_MARK, LEVELS, SUMMARY_KINDS
from lcm.store.derived import FULL_TEXT, misstated, parts_texts, words_out_of_step
from lcm.store.messages import messages_by_key
from lcm.store.migrations import schema_version
from lcm.transcript.large_files import compacted
from lcm.transcript.parts import DecomposedMessage, decompose, read_whole, rebuild

Status = Literal["pass", "warn", "fail"]

_BATCH = 500
_CUT_MARK = "[Truncated from "
_CUT_WITHIN, _FALLBACK_WITHIN = 40, 80  # UTF-16 units from the end
_OWN_SLOTS = {"content", "tool_calls"}
_OWN_SOURCES = {"bash-exec", "unknown-message-shape"}
_UNREADABLE = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError, LcmError)
"""What reading a damaged envelope raises: it may be JSON of any shape."""


class DoctorCheck(NamedTuple):
    """One rule of the doctor, and what in the store breaks it."""

    name: str
    status: Status
    findings: tuple[str, ...] = ()
    is_derived: bool = False
    """What is wrong can be worked out anew from what is not."""


@dataclass(frozen=True, slots=True)
class Numbering:
    """How messages and context items are counted."""

    first_seq: int | None = None
    """Of a conversation; None = whatever its lowest is: from there on there must be no gap."""
    has_dense_ordinals: bool = False
    """Context items are numbered from 0 without gaps; ours leave room between them."""


class _Rule(NamedTuple):
    name: str
    flags: frozenset[str]
    sql: str
    """Empty: the check is a function."""


def scan(
    connection: sqlite3.Connection, conversation: int | None = None, numbering: Numbering | None = None
) -> list[DoctorCheck]:
    """Run every check; each is independent of the others, but totals are derived only where lineage is whole.

    Args:
        connection: to a store whose schema is up to date.
        conversation: its integer key; None = all, and what concerns the file as a whole.
        numbering: what seqs and ordinals must be; None = as this program writes them.
    """
    numbered = numbering or Numbering()
    asked = {
        "conversation": conversation,
        "first_seq": numbered.first_seq,
        "is_dense": numbered.has_dense_ordinals,
        "kinds": to_json(SUMMARY_KINDS),
        "levels": to_json(LEVELS),
    }
    connection.create_function("repr", 1, repr, deterministic=True)
    checks: dict[str, DoctorCheck] = {}
    for name, flags, sql in _rules():
        if "of_file" in flags and conversation is not None:
            continue
        bad: Status = "warn" if "warns" in flags else "fail"
        rests_on = (checks[other] for other in _derived_from().get(name, ()) if other in checks)
        is_derived = name in _derived_from() and all(check.status == "pass" for check in rests_on)
        try:
            found = _queried(connection, sql, asked) if sql else _FUNCTIONS[name](connection, conversation)
            findings = tuple(found)
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:  # a column may hold what it should not
            bad, findings = "fail", (f"cannot be read: {error}",)
        checks[name] = DoctorCheck(name, bad if findings else "pass", findings, is_derived)
    return list(checks.values())


def broken_lineage(checks: Sequence[DoctorCheck]) -> list[str]:
    """The checks that found something in what the totals of summaries are added up from: totals worked out anew
    would agree with it, and hide it."""
    return [check.name for check in checks if check.status != "pass" and check.name in _lineage()]


def mark_of(content: str) -> Literal["old", "new", "fallback"] | None:
    """How a summary's words show that they were cut rather than summarised; None: they do not."""
    if content.startswith(FALLBACK_MARK):
        return "old"
    for mark, within, kind in ((_CUT_MARK, _CUT_WITHIN, "new"), (FALLBACK_MARK, _FALLBACK_WITHIN, "fallback")):
        start = content.rfind(mark)
        if start >= 0 and utf16_length(content[start:]) < within:
            return kind  # type: ignore[return-value]  # one of the two above
    return None


def census(connection: sqlite3.Connection) -> dict[str, Any]:
    """Counts by name; of what comes in kinds a count by kind; when the first and last message were said."""
    first, last = connection.execute("SELECT min(created_at), max(created_at) FROM messages").fetchone()
    found: dict[str, Any] = {"schema version": schema_version(connection), "first said": first, "last said": last}
    for name, sql in _sections("census.sql"):
        rows = connection.execute(sql).fetchall()
        found[name] = rows[0][0] if rows and len(rows[0]) == 1 else dict(rows)
    return found


def _sections(file: str) -> Iterator[tuple[str, str]]:
    """The queries of a file, each with what its heading says."""
    text = resources.files("lcm.store").joinpath(file).read_text("utf-8")
    _, *parts = re.split(r"^-- (?:check|count): (.+)\n", text, flags=re.MULTILINE)
    yield from zip(parts[::2], parts[1::2], strict=True)


@cache
def _rules() -> tuple[_Rule, ...]:
    rules = []
    for heading, text in _sections("checks.sql"):
        name, *flags = heading.split()
        rules.append(_Rule(name, frozenset(flags), text.partition("\n")[2].strip()))
    return tuple(rules)


@cache
def _lineage() -> frozenset[str]:
    return frozenset(rule.name for rule in _rules() if "lineage" in rule.flags)


@cache
def _derived_from() -> Mapping[str, Iterable[str]]:
    """Of each check of what follows from the rest, those that must pass before it may be worked out anew."""
    independent: dict[str, Iterable[str]] = dict.fromkeys(("admission_scores", *FULL_TEXT), ())
    totals = dict.fromkeys(("summary_spans", "summary_totals"), _lineage())
    return {**independent, "parts_searchable": ("messages_as_recorded",), **totals}


def _queried(connection: sqlite3.Connection, sql: str, asked: Mapping[str, Any]) -> Iterator[str]:
    for (finding,) in connection.execute(sql, asked):
        yield str(finding)


def _cycles(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Take away summaries whose sources are all taken away; what is left over runs in circles."""
    edges = connection.execute(
        """
        SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR s.conversation_id = ?1
        """,
        (conversation,),
    ).fetchall()
    waiting: TopologicalSorter[str] = TopologicalSorter()
    for summary_id, source in edges:
        waiting.add(summary_id, source)
    with suppress(CycleError):
        waiting.prepare()
    left = dict.fromkeys(summary_id for edge in edges for summary_id in edge)
    while free := waiting.get_ready():
        for summary_id in free:
            del left[summary_id]
        waiting.done(*free)
    for summary_id in left:
        yield f"summary {summary_id} is beneath itself"


def _unlike_originals(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Take the recorded message apart anew, and compare role, words and parts.

    Judged are messages whose words are those of the recorded `content`. Those of formats with a reading of their own
    (Gemini, ShareGPT, single items of Codex, steps of SWE-agent) need only give a recorded message; one without a
    recorded original need only be readable.
    """
    keys = connection.execute(
        "SELECT message_key FROM messages WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY conversation_id, seq",
        (conversation,),
    )
    while rows := keys.fetchmany(_BATCH):
        for key, message in _read(connection, [key for (key,) in rows]):
            if problem := message if isinstance(message, str) else _problem(message):
                yield f"message {key} {problem}"


def _read(connection: sqlite3.Connection, keys: Sequence[str]) -> Iterator[tuple[str, Message | str]]:
    """Messages, or why one cannot be read."""
    try:
        yield from messages_by_key(connection, keys).items()
    except _UNREADABLE as error:
        if len(keys) == 1:
            yield keys[0], f"cannot be read: {error}"
            return
        for key in keys:
            yield from _read(connection, [key])


def _problem(message: Message) -> str:
    if "native" not in message.envelope:
        return ""
    try:
        rebuild(message)
        if not _is_plain(message):
            return ""
        native = read_whole(message)
        has_role = isinstance(native.get("role"), str)
        said = decompose(native, None if has_role else message.role)
        content = compacted(message).content if message.files else said.content
    except _UNREADABLE as error:
        return f"does not give its recorded original: {type(error).__name__}: {error}"
    wrong = [
        *(["role"] if has_role and said.role != message.role else []),
        *(["content"] if content != message.content else []),
        *(["parts"] if _has_other_parts(message, said) else []),
    ]
    return f"has another {' and '.join(wrong)} than its recorded original" if wrong else ""


def _is_plain(message: Message) -> bool:
    """Whether `decompose` made it."""
    slots = set(message.envelope["slots"])
    return slots <= _OWN_SLOTS if slots else any(p.metadata.get("source") in _OWN_SOURCES for p in message.parts)


def _has_other_parts(message: Message, said: DecomposedMessage) -> bool:
    slots = message.envelope["slots"]
    if any("slot" in part.metadata and part.metadata["slot"] not in slots for part in message.parts):
        return False  # calls that were recorded as JSON text: their parts follow from no slot
    return len(said.parts) != len(message.parts) or not all(map(_is_same, message.parts, said.parts))


def _is_same(stored: Part, said: Part) -> bool:
    if said.tool_call_id is not None and stored.tool_call_id != said.tool_call_id:
        return False  # a reader may know the call from elsewhere where the block does not name it
    return (stored.part_type, stored.text, stored.tool_name, stored.tool_input, stored.tool_output) == (
        said.part_type, said.text, said.tool_name, said.tool_input, said.tool_output
    )  # fmt: skip


def _unsearchable_parts(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    """Messages whose parts say something that is not kept for searching, or where something else is."""
    kept = {
        key: (number, text)
        for key, number, text in connection.execute(
            "SELECT message_key, message_id, parts_text FROM messages WHERE ?1 IS NULL OR conversation_id = ?1",
            (conversation,),
        )
    }
    for (number, is_now), text in sorted((kept[key], text) for key, text in parts_texts(connection, conversation)):
        if is_now != text:
            yield f"msg#{number}: its parts say {'other' if is_now else 'more'} than is searched"


def _marked_summaries(connection: sqlite3.Connection, conversation: int | None) -> Iterator[str]:
    rows = connection.execute(
        """
        SELECT summary_id, content FROM summaries
        WHERE (?1 IS NULL OR conversation_id = ?1) AND (instr(content, ?2) OR instr(content, ?3)) ORDER BY rowid
        """,
        (conversation, _CUT_MARK, FALLBACK_MARK),
    )
    for summary_id, content in rows:
        if kind := mark_of(content):
            yield f"summary {summary_id} was cut ({kind})"


_FUNCTIONS: Mapping[str, Callable[[sqlite3.Connection, int | None], Iterator[str]]] = {
    "summaries_acyclic": _cycles,
    "messages_as_recorded": _unlike_originals,
    "parts_searchable": _unsearchable_parts,
    "summaries_whole": _marked_summaries,
    **{table: partial(words_out_of_step, table) for table in FULL_TEXT},
    "summary_totals": misstated,
}
