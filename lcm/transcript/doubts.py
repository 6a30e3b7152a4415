"""What gives doubt of a file that was read: it may be of another format, or of a version that its reader does not know.

One guard for all formats: nothing read is never success.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lcm.records.conversation import Message, Role
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile

_SILENT_PARTS = frozenset({"tool", "reasoning", "file"})
"""A message that holds one may well be without words."""
_MOST_ASIDE = 0.1
_TIMELESS = "no message says when it was said: decay and recency have nothing to work on"


def in_few_lines(doubts: Sequence[str]) -> list[str]:
    """The doubts of files; where many tell no instant, one line names the first of them and their number."""
    timeless = [doubt for doubt in doubts if doubt.endswith(_TIMELESS)]
    if len(timeless) < 2:
        return list(doubts)
    first = timeless[0].removesuffix(f": {_TIMELESS}")
    others = [doubt for doubt in doubts if not doubt.endswith(_TIMELESS)]
    return [*others, f"{first} and {len(timeless) - 1:,} more: {_TIMELESS}"]


@dataclass(slots=True)
class Tally:
    """Counts what a reader gives."""

    items: int = 0
    messages: int = 0
    with_instant: int = 0
    spoken: Counter[Role] = field(default_factory=Counter)
    """Messages of people and of assistants that should have words."""
    worded: Counter[Role] = field(default_factory=Counter)

    def counted(self, items: Iterable[RecordedItem]) -> Iterator[RecordedItem]:
        """The items, counted as they pass."""
        for recorded in items:
            self.items += 1
            if isinstance(recorded.item, Message):
                self._count(recorded.item)
            yield recorded

    def _count(self, message: Message) -> None:
        self.messages += 1
        self.with_instant += message.created_at is not None
        has_words = bool(message.content.strip())
        self.worded[message.role] += has_words
        if message.role in ("user", "assistant"):
            self.spoken[message.role] += has_words or all(part.part_type not in _SILENT_PARTS for part in message.parts)

    def judge(self, file: RecordedFile) -> None:
        """Leave with the file whether nothing is said in it, and what gives doubt of it."""
        file.is_silent = not self.worded.total()
        file.doubts += [f"{file.path}: {doubt}" for doubt in self._doubts(file)]

    def _doubts(self, file: RecordedFile) -> Iterator[str]:
        aside = len(file.quarantine)
        if not self.messages:
            yield f"no message in it, and {self.items:,} records of other kinds"
        elif not self.with_instant:
            yield _TIMELESS
        for role, spoken in self.spoken.items():
            if spoken and not self.worded[role]:
                yield f"none of {spoken:,} messages of the {role} has words"
        if aside > _MOST_ASIDE * (self.items + aside):
            yield f"{aside:,} of {self.items + aside:,} records were put aside"
