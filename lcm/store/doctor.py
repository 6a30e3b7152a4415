"""Whether a store is what its rules say, found without changing anything.

Source: lossless-claw 0.6.3 for the eight checks of its integrity scan and for the marks of summaries that were cut;
the others are ours.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from lcm.javascript import utf16_length
from lcm.records.summary import FALLBACK_MARK
from lcm.store import context_checks, lineage_checks, recorded_checks, value_checks
from lcm.store.derived import FULL_TEXT, misstated, scores_out_of_step, words_out_of_step
from lcm.store.findings import told

Status = Literal["pass", "warn", "fail"]

_CUT_MARK = "[Truncated from "
_CUT_WITHIN, _FALLBACK_WITHIN = 40, 80  # UTF-16 units from the end

_TOTALS = {"summary_totals", "summary_spans"}
_NOT_OF_LINEAGE = {
    "context_token_consistency", "retired_items_valid_refs", "hidden_out_of_use", "conversations_named",
    "messages_as_recorded", "message_parts_whole", "parts_searchable", "summary_words", "summaries_say_something",
    "summary_file_ids", "summary_files_known", "summaries_whole", "admission_scores", *FULL_TEXT, *_TOTALS,
}  # fmt: skip


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


def scan(
    connection: sqlite3.Connection, conversation: int | None = None, numbering: Numbering | None = None
) -> list[DoctorCheck]:
    """Run every check; each is independent of the others, but totals are derived only where lineage is whole.

    Args:
        connection: to a store whose schema is up to date.
        conversation: its integer key; None = all, and what concerns the file as a whole.
        numbering: what seqs and ordinals must be; None = as this program writes them.
    """
    keys = [conversation] if conversation is not None else context_checks.conversation_keys(connection)
    numbered = numbering or Numbering()
    dense = keys if numbered.has_dense_ordinals else []
    one = (connection, conversation)

    def queried(name: str, bad: Status = "fail") -> DoctorCheck:
        return _check(name, told(connection, conversation, name), bad=bad)

    checks = [
        _check("conversation_exists", context_checks.unknown_conversation(*one)),
        _check("context_items_contiguous", context_checks.context_gaps(connection, dense)),
        *map(queried, ("context_items_valid_refs", "summaries_have_lineage")),
        queried("no_orphan_summaries", bad="warn"),
        _check("context_token_consistency", context_checks.uncounted(connection, keys)),
        _check("message_seq_contiguous", context_checks.seq_gaps(connection, keys, numbered.first_seq)),
        queried("no_duplicate_context_refs"),
        queried("context_in_order"),
        queried("messages_reachable"),
        queried("items_stand_once"),
        queried("retired_items_valid_refs"),
        queried("hidden_out_of_use"),
        queried("conversations_named"),
        _check("summaries_acyclic", lineage_checks.cycles(*one)),
        *map(queried, ("summary_depths", "sources_of_own_conversation", "sources_fit_kind", "sources_numbered")),
        _check("sources_in_order", lineage_checks.disordered(*one)),
        *map(queried, ("leaves_without_gaps", "tokens_are_counts")),
        _check("instants", value_checks.no_instants(*one)),
        _check("summary_words", value_checks.unknown_words(*one)),
        queried("summaries_say_something"),
        _check("summary_file_ids", value_checks.no_file_ids(*one)),
        _check("summary_files_known", value_checks.unknown_files(*one), bad="warn"),
        queried("message_parts_whole"),
        unlike := _check("messages_as_recorded", recorded_checks.unlike_originals(*one)),
        _check("parts_searchable", recorded_checks.unsearchable_parts(*one), is_derived=unlike.status == "pass"),
        _check("summaries_whole", marked_summaries(*one), bad="warn"),
    ]
    if conversation is None:
        checks += [
            _check("pages", _pages(connection)),
            _check("foreign_keys", _references(connection)),
            _check("admission_scores", scores_out_of_step(connection), is_derived=True),
            *(_check(name, words_out_of_step(connection, name), is_derived=True) for name in FULL_TEXT),
        ]
    is_derived = not broken_lineage(checks)
    return [
        *checks,
        _check("summary_spans", value_checks.no_spans(*one), is_derived=is_derived),
        _check("summary_totals", misstated(*one), is_derived=is_derived),
    ]


def broken_lineage(checks: Sequence[DoctorCheck]) -> list[str]:
    """The checks that found something in what the totals of summaries are added up from: totals worked out anew
    would agree with it, and hide it."""
    return [check.name for check in checks if check.status != "pass" and check.name not in _NOT_OF_LINEAGE]


def mark_of(content: str) -> Literal["old", "new", "fallback"] | None:
    """How a summary's words show that they were cut rather than summarised; None: they do not."""
    if content.startswith(FALLBACK_MARK):
        return "old"
    for mark, within, kind in ((_CUT_MARK, _CUT_WITHIN, "new"), (FALLBACK_MARK, _FALLBACK_WITHIN, "fallback")):
        start = content.rfind(mark)
        if start >= 0 and utf16_length(content[start:]) < within:
            return kind  # type: ignore[return-value]  # one of the two above
    return None


def marked_summaries(connection: sqlite3.Connection, conversation: int | None = None) -> Iterator[str]:
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


def _check(name: str, findings: Iterator[str], *, bad: Status = "fail", is_derived: bool = False) -> DoctorCheck:
    try:
        found = tuple(findings)
    except (sqlite3.DatabaseError, TypeError, ValueError) as error:  # a column may hold what it should not
        return DoctorCheck(name, "fail", (f"cannot be read: {error}",), is_derived)
    return DoctorCheck(name, bad if found else "pass", found, is_derived)


def _pages(connection: sqlite3.Connection) -> Iterator[str]:
    for (said,) in connection.execute("PRAGMA integrity_check"):
        if said != "ok":
            yield str(said)


def _references(connection: sqlite3.Connection) -> Iterator[str]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} names a row of {parent} that is not there"
