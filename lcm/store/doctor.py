"""What a store holds, counted, whether it is what its rules say, and what follows from the rest, worked out anew:
full-text tables, admission's scores by message, the totals of summaries.

The rules are the checks of `checks.sql`, in its order; those that no query can tell are functions here.

Source: lossless-claw 0.6.3 for the first eight checks and for the marks of summaries that were cut; the others are
ours.
"""

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from lcm.store.messages import messages_by_key, parts_texts
from lcm.store.store import schema_version
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


class FullTextTable(NamedTuple):
    """A full-text table: the table that it follows, that one's key, the column that holds it here, and the columns
    that both have; a row without words in `text` stands in none."""

    base: str
    key: str
    own: str
    columns: str
    text: str

    @property
    def worded(self) -> str:
        """The rows that it holds, as they should be."""
        return (
            f"SELECT {self.key}, {self.columns} FROM {self.base} "  # noqa: S608 (our own constants)
            f"WHERE trim({self.text}, char(9, 10, 11, 12, 13, 32)) <> ''"
        )


FULL_TEXT = {
    "messages_fts": FullTextTable("messages", "message_id", "rowid", "content, parts_text", "full_text"),
    "summaries_fts": FullTextTable("summaries", "summary_id", "summary_id", "content", "content"),
    "summaries_fts_cjk": FullTextTable("summaries", "summary_id", "summary_id", "content", "content"),
}


class SummaryTotals(NamedTuple):
    """The totals of a summary, worked out from its sources."""

    earliest_at: str | None
    latest_at: str | None
    descendant_count: int
    descendant_token_count: int
    source_message_token_count: int


@dataclass(frozen=True, slots=True)
class Numbering:
    """How messages and context items are counted."""

    first_seq: int | None = None
    """Of a conversation; None = whatever its lowest is: from there on there must be no gap."""
    has_dense_ordinals: bool = False
    """Context items are numbered from 0 without gaps; ours leave room between them."""


class _Rule(NamedTuple):
    name: str
    flags: Mapping[str, str]
    """Each with what it names; empty: nothing."""
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
        basis = {one.name for one in _rules() if flags.get("derived") in (one.name, *one.flags)}
        is_derived = "derived" in flags and all(checks[one].status == "pass" for one in basis & checks.keys())
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
    lineage = {rule.name for rule in _rules() if "lineage" in rule.flags}
    return [check.name for check in checks if check.status != "pass" and check.name in lineage]


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
        told = {flag: names for flag, _, names in (one.partition("=") for one in flags)}
        rules.append(_Rule(name, told, text.partition("\n")[2].strip()))
    return tuple(rules)


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


def words_out_of_step(table: str, connection: sqlite3.Connection, _conversation: int | None = None) -> Iterator[str]:
    """Tell which rows a full-text table lacks, has too many, or has with other words; and whether it is damaged."""
    follows = FULL_TEXT[table]
    connection.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")  # noqa: S608 (our own constants)
    # By a key of text each look-up would read the whole full-text table.
    found = connection.execute(f"SELECT {follows.own}, {follows.columns} FROM {table}")  # noqa: S608
    kept: dict[object, list[int]] = {}
    for item_id, *words in found:
        kept.setdefault(item_id, []).append(hash(tuple(words)))
    for item_id, *words in connection.execute(follows.worded):
        held = kept.pop(item_id, [])
        if held != [hash(tuple(words))]:
            yield f"{table}: {_named(table, item_id)} {'has other words' if held else 'is missing'}"
    for item_id in kept:
        yield f"{table}: {_named(table, item_id)} is not in {follows.base}"


def _named(table: str, item_id: object) -> str:
    """An item by the id that `lcm grep` and `describe` know it by."""
    return f"msg#{item_id}" if FULL_TEXT[table].base == "messages" else str(item_id)


def rebuild_words(connection: sqlite3.Connection, table: str) -> None:
    """Make a full-text table anew, inside the caller's transaction."""
    follows = FULL_TEXT[table]
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.execute(f"DROP TABLE {table}")
    connection.execute(sql)
    connection.execute(f"INSERT INTO {table} ({follows.own}, {follows.columns}) {follows.worded}")


def rebuild_scores(connection: sqlite3.Connection) -> None:
    """Make the scores by message anew, inside the caller's transaction."""
    connection.execute("DELETE FROM admission_scores")
    connection.execute(
        """
        INSERT INTO admission_scores (message_key, decision_id, score)
        SELECT DISTINCT s.value, d.decision_id, d.score
        FROM decisions d, json_each(d.candidate, '$.source_message_ids') s WHERE d.score IS NOT NULL
        """
    )


def misstated(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[str]:
    """Tell which summaries' totals are not those of their sources."""
    for summary_id, is_now, right in _compared(connection, conversation):
        wrong = [name for name, old, new in zip(SummaryTotals._fields, is_now, right, strict=True) if old != new]
        yield f"summary {summary_id}: {', '.join(wrong)}"


def recompute_totals(connection: sqlite3.Connection) -> int:
    """Work the totals of summaries out anew, inside the caller's transaction; returns how many were wrong."""
    wrong = list(_compared(connection, None))
    connection.executemany(
        """
        UPDATE summaries SET earliest_at = ?, latest_at = ?, descendant_count = ?, descendant_token_count = ?,
                             source_message_token_count = ? WHERE summary_id = ?
        """,
        [(*right, summary_id) for summary_id, _, right in wrong],
    )
    return len(wrong)


def _compared(
    connection: sqlite3.Connection, conversation: int | None
) -> Iterator[tuple[str, SummaryTotals, SummaryTotals]]:
    """Summaries with totals that are wrong, and the right ones; one without sources is left alone."""
    leaves = {
        row[0]: SummaryTotals(row[1], row[2], 0, 0, row[3])
        for row in connection.execute(
            """
            SELECT l.summary_id, min(m.created_at), max(m.created_at), sum(max(m.token_count, 0))
            FROM summary_messages l JOIN messages m USING (message_id) JOIN summaries s USING (summary_id)
            WHERE ?1 IS NULL OR s.conversation_id = ?1 GROUP BY l.summary_id
            """,
            (conversation,),
        )
    }
    sources: dict[str, list[str]] = {}
    for summary_id, source in connection.execute(
        """
        SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
        WHERE ?1 IS NULL OR s.conversation_id = ?1
        """,
        (conversation,),
    ):
        sources.setdefault(summary_id, []).append(source)
    rows = connection.execute(
        """
        SELECT summary_id, token_count, created_at, earliest_at, latest_at, descendant_count, descendant_token_count,
               source_message_token_count
        FROM summaries WHERE ?1 IS NULL OR conversation_id = ?1 ORDER BY depth, rowid
        """,
        (conversation,),
    )
    known: dict[str, tuple[int, str, SummaryTotals]] = {}
    for summary_id, tokens, created_at, *stored in rows:
        is_now = SummaryTotals(*stored)
        below = [known[source] for source in sources.get(summary_id, ()) if source in known]
        right = leaves.get(summary_id) or (_added_up(below) if below else is_now)
        known[summary_id] = (tokens, created_at, right)
        if is_now != right:
            yield summary_id, is_now, right


def _added_up(sources: list[tuple[int, str, SummaryTotals]]) -> SummaryTotals:
    return SummaryTotals(
        min(totals.earliest_at or created_at for _, created_at, totals in sources),
        max(totals.latest_at or created_at for _, created_at, totals in sources),
        sum(totals.descendant_count + 1 for *_, totals in sources),
        sum(tokens + totals.descendant_token_count for tokens, _, totals in sources),
        sum(totals.source_message_token_count for *_, totals in sources),
    )


_FUNCTIONS: Mapping[str, Callable[[sqlite3.Connection, int | None], Iterator[str]]] = {
    "summaries_acyclic": _cycles,
    "messages_as_recorded": _unlike_originals,
    "parts_searchable": _unsearchable_parts,
    "summaries_whole": _marked_summaries,
    **{table: partial(words_out_of_step, table) for table in FULL_TEXT},
    "summary_totals": misstated,
}
