"""Search by words or by a regular expression, and what a tool tells of it.

Source: lossless-claw, 0.6.3 and 0.15.3.
"""

import re
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import regex

from lcm.encoding import well_formed
from lcm.errors import LimitError
from lcm.javascript import first_units, utf16_length
from lcm.limits import PATTERN_STEPS, QUERY_CHARACTERS
from lcm.protocols.models import TokenEstimator
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

_PIECE = re.compile(
    r"""
      (?P<count> \{ \s* (?P<least>\d*) \s* (?: , \s* (?P<most>\d*) \s* )? \} )
    | (?P<atom> \\. | \[ \^? \]? (?: \\. | [^\]\\] )* \]? | . )
    """,
    re.VERBOSE | re.DOTALL,
)
Mode = Literal["regex", "full_text"]
Scope = Literal["messages", "summaries", "both"]

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


def written_out_steps(pattern: str) -> int:
    """The characters and sets of a pattern, each as often as the repetitions around it say, at most.

    A repetition without an upper end counts as often as its lower one, for it is a loop. Where the syntax leaves a
    brace without a meaning, what it counts too many is refused too much.
    """
    groups, last = [0], 0
    """Steps of the groups that are open, the outermost first; and of the piece that a repetition would repeat."""
    for piece in _PIECE.finditer(pattern):
        if piece["count"] and (piece["least"] or piece["most"]):
            times = max(int(piece["least"] or 0), int(piece["most"] or 0), 1)
            groups[-1] += last * (times - 1)
            last *= times
        elif piece[0] == "(":
            groups.append(0)
            last = 1
        elif piece[0] == ")" and len(groups) > 1:
            last = groups.pop() + 1
            groups[-1] += last
        elif piece[0] not in "*+?":
            last = 1
            groups[-1] += 1
    return sum(groups)


class Search(NamedTuple):
    """What is searched for, and where."""

    pattern: str
    mode: Mode = "regex"
    scope: Scope = "both"
    conversation: str | int | None = None
    """None = all."""
    since: datetime | None = None
    """Not before that instant."""
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Grep:
    """The result of a search of the store: messages and summaries, newest or best first."""

    search: Search
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
class ReadingSettings:
    """How a store is searched and read back, and how far where nothing is said."""

    token_estimator: TokenEstimator
    rules: LosslessRules = "corrected"
    order: Order = "relevance"
    """Of what a search for words finds: the best first, the newest, or the best with a discount for age."""
    limit: int = 50
    """Of messages, and again of summaries, that a search gives."""
    max_pattern_chars: int = 500
    """UTF-16 units of a regular expression."""
    max_regex_rows: int | None = None
    """How many of the newest texts a regular expression is tried on; None = all, within the time."""
    regex_timeout_seconds: float = 5.0
    """Of one search by a regular expression, for messages and again for summaries."""
    default_depth: int = 3
    """Steps downwards of an expansion."""
    max_expand_tokens: int = 4000
    """Of one expansion, where nothing else is asked for; of a tool's at most."""


def grep(
    connection: sqlite3.Connection,
    search: Search,
    bounds: SearchBounds,
    how: ReadingSettings,
    incidents: Counter[str],
) -> Grep:
    """Search messages, summaries or both; the limit counts for each."""
    QUERY_CHARACTERS.check("the query", len(search.pattern))
    if refusal := _refusal(search.pattern, search.mode, how):
        return Grep(search, (), (), (refusal,), is_refused=True)
    found: dict[Scope, list[tuple[Any, str]]] = {}
    notes: list[str] = []
    subjects = _SUBJECTS[how.rules]
    for scope, subject in subjects.items():
        if search.scope not in (scope, "both"):
            continue
        if search.mode == "full_text":
            found[scope] = find(
                connection,
                subject,
                search.pattern,
                bounds,
                how.order,
                keeps_phrases=how.rules != "original",
                incidents=incidents,
                order_cjk=how.order if how.rules == "0.15" else "relevance",
            )
            continue
        compiled = regex.compile(search.pattern)
        seen = scan(
            connection, subject, compiled, bounds, max_rows=how.max_regex_rows, seconds=how.regex_timeout_seconds
        )
        found[scope] = seen.hits
        if seen.stopped:
            incidents["regex_stopped"] += 1
            notes.append(f"{scope}: {seen.stopped}")
    messages = message_hits(connection, found["messages"]) if "messages" in found else ()
    summaries = summary_hits(connection, found["summaries"], subjects["summaries"]) if "summaries" in found else ()
    return Grep(search, tuple(messages), tuple(summaries), tuple(notes))


def grep_text(found: Grep, max_chars: int) -> str:
    """What was found as the tools tell it; what would go beyond `max_chars` UTF-16 units is left out, and that is
    said."""
    asked = found.search
    where = "all conversations" if asked.conversation is None else str(asked.conversation)
    lines = [
        "## LCM Grep Results",
        f"**Pattern:** `{asked.pattern}`",
        f"**Mode:** {asked.mode} | **Scope:** {asked.scope}",
        f"**Conversation scope:** {where}",
    ]
    times = [f"{name} {minute(at)}" for name, at in (("since", asked.since), ("before", asked.before)) if at]
    lines += [f"**Time filter:** {' | '.join(times)}"] if times else []
    lines += [f"**Total matches:** {found.total}"]
    lines += [f"**Note:** {note}" for note in found.notes]
    lines += [""]
    if not found.total:
        return "\n".join([*lines, "No matches found."])
    sections = {
        "### Messages": [
            f"- [msg#{hit.number}] ({hit.role}, {minute(hit.created_at)}): {one_line(hit.snippet)}"
            for hit in found.messages
        ],
        "### Summaries": [
            f"- [{hit.summary_id}] ({hit.kind}, {minute(hit.created_at)}): {one_line(hit.snippet)}"
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


def _refusal(pattern: str, mode: Mode, how: ReadingSettings) -> str:
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
