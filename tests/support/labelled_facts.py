"""Sessions in which every fact is marked by hand, and how far the finders agree with that.

A file holds a session: a paragraph a message, `speaker: words`, calls of tools as lines `!tool {arguments}`. What
states a fact stands between tags of its kind, one within another where one word states two.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from lcm.compaction.facts.finding import statements_of
from lcm.compaction.facts.reading import folded, read_message
from lcm.records.conversation import Message, Part, Role

FOLDER = Path(__file__).parent.parent / "lcm" / "compaction" / "facts" / "labelled"
SESSIONS = ("coding", "service", "chat", "assistant")
Half = Literal["development", "test"]
_TAG = re.compile(r"</?([a-z]+)>")
_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


class Label(NamedTuple):
    """One fact that a person marked."""

    kind: str
    words: str


class LabelledMessage(NamedTuple):
    """A message, and what it states."""

    message: Message
    labels: tuple[Label, ...]


class Agreement(NamedTuple):
    """How finders and labels agree: a statement and a label of one kind whose words hold one another are one."""

    found: int
    """Statements."""
    right: int
    """Of these, those that somebody marked."""
    labels: int
    met: int
    """Of these, those that were found."""

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.met / self.labels if self.labels else 1.0


def labelled(session: str, half: Half) -> list[LabelledMessage]:
    """The first half of a session, for development, or the second."""
    paragraphs = (FOLDER / f"{session}.txt").read_text("utf-8").strip().split("\n\n")
    messages = list(_messages(paragraphs))
    middle = len(messages) // 2
    return messages[:middle] if half == "development" else messages[middle:]


def agreement(messages: Sequence[LabelledMessage]) -> dict[str, Agreement]:
    """Kind -> how finders and labels agree on it."""
    counts = {name: Counter[str]() for name in ("found", "right", "labels", "met")}
    for message, labels in messages:
        stated = list({(one.kind, one.said) for one in statements_of(read_message(message))})
        for kind, said in stated:
            counts["found"][kind] += 1
            counts["right"][kind] += any(kind == one.kind and _is_same(said, one.words) for one in labels)
        for label in labels:
            counts["labels"][label.kind] += 1
            counts["met"][label.kind] += any(
                kind == label.kind and _is_same(said, label.words) for kind, said in stated
            )
    kinds = sorted({kind for one in counts.values() for kind in one})
    return {kind: Agreement(*(one[kind] for one in counts.values())) for kind in kinds}


def pooled(agreements: Sequence[Agreement]) -> Agreement:
    return Agreement(*(sum(column) for column in zip(*agreements, strict=True)))


def _messages(paragraphs: Sequence[str]) -> Iterator[LabelledMessage]:
    speakers: list[str] = []
    calls: list[str] = []
    for number, paragraph in enumerate(paragraphs):
        plain, labels = _read(paragraph)
        speaker, _, said = plain.partition(": ")
        if speaker not in _ROLES and speaker not in speakers:
            speakers.append(speaker)
        role = _ROLES.get(speaker) or ("user" if speaker == speakers[0] else "assistant")
        words = "\n".join(line for line in said.splitlines() if not line.startswith("!")).strip()
        made = [line[1:].partition(" ") for line in said.splitlines() if line.startswith("!")]
        parts = [
            Part("tool", tool_call_id=f"{number}.{place}", tool_name=name, tool_input=given)
            for place, (name, _, given) in enumerate(made)
        ]
        if role == "tool":
            parts = [Part("tool", text=words, tool_call_id=call) for call in calls]
        calls = [part.tool_call_id or "" for part in parts]
        author = None if speaker in _ROLES else speaker
        yield LabelledMessage(Message(f"m{number}", role, words, "s", author=author, parts=tuple(parts)), labels)


def _read(paragraph: str) -> tuple[str, tuple[Label, ...]]:
    """The words without their tags, and what stood between these."""
    plain, opened, labels, place = "", list[tuple[str, int]](), list[Label](), 0
    for tag in _TAG.finditer(paragraph):
        plain += paragraph[place : tag.start()]
        place = tag.end()
        if tag[0].startswith("</"):
            kind, start = opened.pop()
            assert kind == tag[1], paragraph
            labels.append(Label(kind, plain[start:]))
        else:
            opened.append((tag[1], len(plain)))
    assert not opened, paragraph
    return plain + paragraph[place:], tuple(dict.fromkeys(labels))


def _is_same(said: str, words: str) -> bool:
    one, other = folded(said), folded(words)
    return bool(one) and bool(other) and (one in other or other in one)
