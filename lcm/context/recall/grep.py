"""Search by words or by a regular expression, and what a tool tells of it.

Source: lossless-claw, 0.6.3 and 0.15.3.
"""

import re
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import regex

from lcm.context.recall.pattern_steps import written_out_steps
from lcm.encoding import well_formed
from lcm.errors import LimitError
from lcm.javascript import first_units, utf16_length
from lcm.limits import PATTERN_STEPS, QUERY_CHARACTERS
from lcm.records.rules import LosslessRules
from lcm.store.search import (
    COVERED,
    LATEST,
    MESSAGES,
    SUMMARIES,
    WORDS,
    MessageHit,
    Order,
    SearchBounds,
    SearchSubject,
    SummaryHit,
    find,
    message_hits,
    scan,
    summary_hits,
)

Mode = Literal["regex", "full_text"]
Scope = Literal["messages", "summaries", "both"]

SORTS: dict[Order, str] = {"time": "recency", "relevance": "relevance", "hybrid": "hybrid"}
"""What hosts call the orders."""

_CALL = re.compile(r"\(\?(?:R|&|P>|[+-]?\d)")
"""A group within which the pattern, or a group of it, is matched again."""
_NESTED_QUANTIFIERS = re.compile(r"[+*?]\)(?:[+*?]|\{\d)")
_QUOTED = re.compile(r'"[^"]*"')
_SYNTAX = re.compile(r"\||\.[*+?]|\[[^\]]+\]|\\[bBdDsSwW]|(?<!\S)\^|\$(?!\S)")
_SUBJECTS: dict[LosslessRules, dict[Scope, SearchSubject]] = {
    "corrected": {"messages": MESSAGES, "summaries": COVERED},
    "original": {"messages": WORDS, "summaries": SUMMARIES},
    "0.15": {"messages": WORDS, "summaries": LATEST},
}
_LINE = 200


@dataclass(frozen=True, slots=True)
class Grep:
    """The result of a search of the store: messages and summaries, newest or best first."""

    messages: tuple[MessageHit, ...]
    summaries: tuple[SummaryHit, ...]
    notes: tuple[str, ...] = ()
    """Why something may be missing: a pattern was refused, a limit was reached."""

    is_refused: bool = False
    """The pattern was not searched for."""

    @property
    def total(self) -> int:
        return len(self.messages) + len(self.summaries)


@dataclass(frozen=True, slots=True)
class GrepSettings:
    """The settings of grep: order, and the bounds of patterns."""

    order: Order
    rules: LosslessRules
    max_pattern_chars: int
    max_regex_rows: int | None
    regex_timeout_seconds: float


def grep(
    connection: sqlite3.Connection,
    pattern: str,
    mode: Mode,
    scope: Scope,
    bounds: SearchBounds,
    how: GrepSettings,
    incidents: Counter[str],
) -> Grep:
    """Search messages, summaries or both; the limit counts for each."""
    QUERY_CHARACTERS.check("the query", len(pattern))
    subjects = [subject for kind, subject in _SUBJECTS[how.rules].items() if scope in (kind, "both")]
    if refusal := _refusal(pattern, mode, how):
        return Grep((), (), (refusal,), is_refused=True)
    compiled = regex.compile(pattern) if mode == "regex" else None
    notes: list[str] = []
    messages: list[MessageHit] = []
    summaries: list[SummaryHit] = []
    for subject in subjects:
        if compiled is None:
            found = find(
                connection,
                subject,
                pattern,
                bounds,
                how.order,
                keeps_phrases=how.rules != "original",
                incidents=incidents,
                order_cjk=how.order if how.rules == "0.15" else "relevance",
            )
        else:
            seen = scan(
                connection,
                subject,
                compiled,
                bounds,
                max_rows=how.max_regex_rows,
                seconds=how.regex_timeout_seconds,
            )
            found = seen.hits
            if seen.stopped:
                incidents["regex_stopped"] += 1
                notes.append(f"{'messages' if subject in (MESSAGES, WORDS) else 'summaries'}: {seen.stopped}")
        if subject in (MESSAGES, WORDS):
            messages = message_hits(connection, found)
        else:
            summaries = summary_hits(connection, found, subject)
    return Grep(tuple(messages), tuple(summaries), tuple(notes))


def grep_text(
    found: Grep,
    pattern: str,
    mode: Mode,
    scope: Scope,
    where: str,
    since: datetime | None,
    before: datetime | None,
    max_chars: int,
    *,
    is_noted: bool,
    sort: str = "",
) -> str:
    """What was found as the tool tells it.

    Args:
        found: what.
        pattern: for what was searched.
        mode: how.
        scope: in what.
        where: the conversation, or that it was all.
        since: not before that instant.
        before: before that instant.
        max_chars: UTF-16 units; what would go beyond is left out, and that is said.
        is_noted: say why something may be missing.
        sort: the order to be told, and with it the conversation of each hit; empty = neither.
    """
    hits: list[MessageHit | SummaryHit] = [*found.messages, *found.summaries]
    where_said = {hit.conversation: f"conv={hit.conversation} " if sort else "" for hit in hits}
    lines = [
        "## LCM Grep Results",
        f"**Pattern:** `{pattern}`",
        f"**Mode:** {mode} | **Scope:** {scope}" + f" | **Sort:** {sort}" * bool(sort),
        f"**Conversation scope:** {where}",
    ]
    times = [f"{name} {minute(at)}" for name, at in (("since", since), ("before", before)) if at]
    lines += [f"**Time filter:** {' | '.join(times)}"] if times else []
    lines += [f"**Total matches:** {found.total}"]
    lines += [f"**Note:** {note}" for note in found.notes if is_noted]
    lines += [""]
    if not found.total:
        return "\n".join([*lines, "No matches found."])
    sections = {
        "### Messages": [
            f"- [{where_said[hit.conversation]}msg#{hit.number}] "
            f"({hit.role}, {minute(hit.created_at)}): {one_line(hit.snippet)}"
            for hit in found.messages
        ],
        "### Summaries": [
            f"- [{where_said[hit.conversation]}{hit.summary_id}] "
            f"({hit.kind}, {minute(hit.created_at)}): {one_line(hit.snippet)}"
            for hit in found.summaries
        ],
    }
    used = utf16_length("\n".join(lines))
    for heading, entries in sections.items():
        if not entries:
            continue
        lines += [heading, ""]
        used += utf16_length(heading) + 3
        for entry in entries:
            used += utf16_length(entry) + 1
            if used > max_chars:
                return "\n".join([*lines, f"(cut at {max_chars:,} characters: narrow the search to see the rest)"])
            lines.append(entry)
        lines.append("")
    return "\n".join(lines)


def minute(at: datetime) -> str:
    """The instant as tools show it."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def one_line(snippet: str) -> str:
    """A snippet as the tool shows it: at most 200 units, on one line."""
    line = re.sub(r"\r?\n", " ", well_formed(snippet))
    return line if utf16_length(line) <= _LINE else f"{first_units(line, _LINE - 3, 'replaced')}..."


def _refusal(pattern: str, mode: Mode, how: GrepSettings) -> str:
    """Why a pattern is not searched for; empty where it is."""
    if mode == "full_text":
        has_syntax = how.rules == "0.15" and _SYNTAX.search(_QUOTED.sub(" ", pattern))
        return f"words are searched for, and {pattern!r} is a regular expression: say mode=regex" if has_syntax else ""
    if utf16_length(pattern) > how.max_pattern_chars:
        return f"the pattern is longer than {how.max_pattern_chars} characters"
    if _NESTED_QUANTIFIERS.search(pattern):
        return "the pattern repeats a group that ends in a repetition, which may never come to an end"
    if call := _CALL.search(pattern):
        return f"the pattern calls a group by {call[0]}...), which may take all memory: write the group out"
    try:
        PATTERN_STEPS.check("the pattern", written_out_steps(pattern))
        regex.compile(pattern)
    except regex.error as error:
        return f"the pattern is no regular expression: {error}"
    except RecursionError:
        return "the pattern nests too many groups: write it flatter"
    except LimitError as error:
        return str(error)
    return ""
