"""A message or a text as finders read it, what a finder finds, and words as finders compare them."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

from lcm.encoding import well_formed
from lcm.records.conversation import Message
from lcm.text import is_cjk, load_stop_words, sentences, words_in
from lcm.transcript.parts import RESULT_TYPES, block_type
from lcm.transcript.passages import passages

Kind = Literal[
    "path", "change", "command", "error", "identifier", "url", "number", "date", "name",
    "decision", "rule", "preference", "question",
]  # fmt: skip
"""`path`: a file that is named; `change`: what was done to a file; `command`: what was run, and how it ended;
`identifier`: hashes, ids, versions and names in code; `number`: with its unit or its label; `date`: days and times of
day; `rule`: what must, must not or may be done; `question`: one that was asked."""

KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]


class Statement(NamedTuple):
    """One thing that a text states."""

    kind: Kind
    key: str
    """What it is about, folded. Two statements of one kind and key are about the same."""
    value: str
    """What is said of it, folded; empty where naming it is all that is said."""
    said: str
    """Its words as they stand."""
    start: int
    end: int
    """Where they stand, in code points."""

    @classmethod
    def at(cls, kind: Kind, key: str, value: str, said: str, start: int) -> Self:
        return cls(kind, key, value, said, start, start + len(said))


class Call(NamedTuple):
    """One call of a tool within a text."""

    name: str
    arguments: Mapping[str, Any]
    start: int
    end: int
    """Where the text tells it."""
    call_id: str = ""
    """Joins it to its result."""


_CALL_HEAD = 300


@dataclass(frozen=True, slots=True)
class ReadText:
    """A text as finders read it."""

    text: str
    calls: tuple[Call, ...] = ()
    """The calls of tools that the text tells of; where it is a summary, its words are all there is."""
    states_rules: bool = True
    """Whether its speaker can lay down rules and preferences."""
    sentences: tuple[tuple[int, int], ...] = ()
    """Where each begins and ends; what is no prose, as blocks of code, is left out."""

    def spoken(self, *, with_calls: bool = False) -> Iterator[tuple[int, str]]:
        """Where each sentence begins, and its words; then the beginnings of calls: what they are given, short of the
        content of files."""
        heads = ((call.start, min(call.end, call.start + _CALL_HEAD)) for call in self.calls if with_calls)
        return ((start, self.text[start:end]) for start, end in (*self.sentences, *heads))

    def tells(self, start: int) -> bool:
        """Whether what stands there is told, and is not within a file that a call writes."""
        return not any(call.start + _CALL_HEAD <= start < call.end for call in self.calls)


Finder = Callable[[ReadText], Iterator[Statement]]
"""Finds the statements of one kind in a text.

Laws: deterministic; `said` is what stands between `start` and `end`; a sentence gives the same statements wherever it
stands, so that a text that quotes it states the same; nothing is found in the empty text.
"""


_MARKS = re.compile(r"[`*\"“”]+|\\[nrt\"\\]")
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_NEGATIONS = re.compile(r"\b(?:no|not|never|none|without|cannot|nor|neither|against|stop|avoid)\b|n't\b", re.IGNORECASE)
_NOT_CONTENT = frozenset(
    """really very just quite also still now then please actually so too ok okay well yes yeah let lets set change
    changed changes raise raised lower lowered increase increased reduce reduced bump bumped update updated make made
    about around roughly approximately exactly only currently over under per is's it's i'm i'd i'll we'll we're don't
    never always must should shall may might can could would will cannot don didn doesn isn won ll ve re
    cost costs take takes took be been has have had get gets got put""".split()  # noqa: SIM905
)


def folded(text: str) -> str:
    """A text without case, marks of emphasis and quotation, escapes, and breaks."""
    return " ".join(_MARKS.sub(" ", text.translate(_QUOTES)).casefold().split())


@lru_cache(maxsize=100_000)
def content_words(text: str) -> tuple[str, ...]:
    """Words that carry content, in order; of Chinese, Japanese and Korean pairs of neighbours."""
    found = words_in(text, without=load_stop_words("english") | _NOT_CONTENT)
    return tuple(word for word in found if len(word) > 1 or is_cjk(word))


def gist(text: str) -> str:
    """What a sentence is about: its content words, each once, in alphabetical order."""
    return " ".join(sorted(set(content_words(text))))


def is_negative(text: str) -> bool:
    return _NEGATIONS.search(text.translate(_QUOTES)) is not None


def label(before: str, behind: str) -> str:
    """What a value in a sentence is about: the two content words nearest before it, else those behind it."""
    near, far = ([word for word in content_words(text) if not word.isdigit()] for text in (before, behind))
    return " ".join(near[-2:] or far[:2])


_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_VIEWED = re.compile(r"^[ \t]*(?:\S{1,200}:)?\d+[:|](?!\d)[^\n]*$", re.MULTILINE)
"""A line of a file, as viewers and searches number them."""
_LEAD = re.compile(
    r"(?:\s+|[-*•>#]+\s+|\d{1,3}[.)]\s+|\[[^\]\n]{1,40}\]\s*|(?:user|assistant|system|tool)(?: \([^)\n]{1,40}\))?:\s*)+"
)
_LONGEST_SENTENCE = 1000


class ReadMessage(NamedTuple):
    """A message in its two halves."""

    said: ReadText
    """Its words and the calls that it makes."""
    brought: ReadText
    """What tools gave back."""


def read_text(text: str) -> ReadText:
    """A text of which no more is known than its words, as a summary."""
    return ReadText(text, sentences=tuple(_sentences(text)))


def read_message(message: Message) -> ReadMessage:
    """A message; who uses tools and who is asked by them lay down no rules."""
    told = passages(message)
    words, calls, results = (
        [passage.text for passage in told if passage.kind == kind] for kind in ("words", "calls", "results")
    )
    if printed := shell_output(message):
        words, results = [message.content.removesuffix(printed).rstrip()], [printed, *results]
    if is_result(message):
        words, results = [], words + results
    spoken = "\n".join(words)
    text = "\n".join((*words, *calls))
    can_rule = message.role in ("user", "system") or message.author is not None
    said = ReadText(text, tuple(_calls(message, text, len(spoken))), can_rule, tuple(_sentences(spoken)))
    return ReadMessage(said, ReadText("\n".join(results)))


def is_result(message: Message) -> bool:
    """Whether a message brings what tools gave back, and nothing that somebody said."""
    kinds = [block_type(part.metadata.get("raw")) in RESULT_TYPES for part in message.parts]
    return message.role == "tool" or (bool(kinds) and all(kinds))


def shell_output(message: Message) -> str:
    """What a shell printed, of a message that is one command with its output; else empty."""
    native = message.envelope.get("native")
    if not isinstance(native, Mapping) or "content" in native or not isinstance(native.get("command"), str):
        return ""
    command = well_formed(f"$ {native['command']}\n")
    return message.content.removeprefix(command) if message.content.startswith(command) else ""


def _calls(message: Message, text: str, start: int) -> Iterator[Call]:
    parts = [part for part in message.parts if part.part_type == "tool" and part.tool_input is not None]
    places = []
    for part in parts:
        start = max(text.find(f"[tool {part.tool_name}]", start), start)
        places.append(start)
        start += 1
    for part, begin, end in zip(parts, places, [*places[1:], len(text)], strict=False):
        yield Call(part.tool_name or "", _arguments(part.tool_input or ""), begin, end, part.tool_call_id or "")


def _arguments(given: str) -> Mapping[str, Any]:
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"input": given}


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences stand, without marks of lists, speakers and times before them."""
    masked = _FENCE.sub(lambda found: "\n" * len(found[0]), text)
    masked = _VIEWED.sub(lambda found: "\n" * len(found[0]), masked)
    place = 0
    for piece in sentences(masked):
        lead = _LEAD.match(piece)
        start, end = place + (lead.end() if lead else 0), place + len(piece.rstrip())
        if start < end and end - start <= _LONGEST_SENTENCE:
            yield start, end
        place += len(piece)
