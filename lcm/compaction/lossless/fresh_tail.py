"""The fresh tail: the newest raw messages, which compaction leaves alone; how many may depend on what they say.

Source: the count is lossless-claw's, 0.6.3; the bound of tokens and the newest turn are 0.15.3's. To choose a tail by
entropy instead of a fixed number of turns is named as a refinement in libravdb memory's document of compaction, without
a formula; the measure of novelty is ours.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TypeVar

from lcm.compaction.context_totals import ContextTotals, totals_of
from lcm.compaction.lossless.planning import tail_start
from lcm.protocols.compaction import ContextWindow
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry
from lcm.retrieval.text_index.words import split_words, windows
from lcm.transcript.rendering import stored_content

_BLOCK = 8
"""Messages that are read at once."""
_KNOWN = 1024
"""Messages whose words are remembered, before they are counted anew."""

Words = Counter[str]
Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class FreshTail:
    """The last `count` raw messages, and before them more, up to `max_count`, while they say something new.

    A message is read against what is newer in the tail. By an add-one model of that tail's T words, of V kinds, a word
    that stands in it n times carries -log2((n + 1) / (T + V + 1)) bits, and one that does not carries the most that a
    word can. Novelty is the share of those most bits that the words of all messages taken before the last `count` carry
    together: 1 where nothing is repeated. The tail ends before the message that brings it below `novelty`.

    A message is in or out by what is newer alone: folding what is older moves no tail. It grows no further than to the
    newest summary: what stays before that has another reason to.
    """

    count: int
    max_count: int | None = None
    """None = the count alone, and nothing is read."""
    novelty: float = 0.8
    max_tokens: int | None = None
    """The tail takes no message, but for the newest, that brings it above; None = it may weigh anything."""
    keeps_turn: bool = False
    """Whether it reaches back to the newest message of a user, whatever count and weight say."""

    def start(self, window: ContextWindow) -> int:
        """The place of the tail's first entry in the context."""
        totals = totals_of(window.entries)
        turn = self._newest_turn(window, totals) if self.keeps_turn and self.count > 0 else None
        if self.max_count is None:
            return tail_start(totals, self.count, self.max_tokens, turn)
        newest = reversed(totals[-self.max_count :] if self.max_count else [])
        said = list(takewhile(lambda entry: entry.is_message, newest))[::-1]
        count = chosen_count(_newest_first(window, said, _words), self.count, self.novelty)
        return tail_start(totals, count, self.max_tokens, turn)

    def _newest_turn(self, window: ContextWindow, totals: ContextTotals) -> int | None:
        """The place of the newest message of a user; None where there is none."""
        roles = _newest_first(window, totals.said, lambda message: message.role, "role of ")
        asked = next((entry for entry, role in zip(reversed(totals.said), roles, strict=False) if role == "user"), None)
        return None if asked is None else totals.place(asked.ordinal)

    def grown_tokens(self, window: ContextWindow) -> int:
        """What the messages weigh that stand in the tail before its last `count`."""
        totals = totals_of(window.entries)
        more = totals[self.start(window) : tail_start(totals, self.count)]
        return sum(totals.weight(entry) for entry in more)


def chosen_count(messages: Iterator[Words], count: int, novelty: float) -> int:
    """How many messages a tail takes.

    Args:
        messages: the words of each, newest first; no more are taken than there are.
        count: that are taken whatever they say.
        novelty: that those before them must have together.
    """
    tail: Words = Counter()
    length = taken = 0
    carried = most = 0.0
    for words in messages:
        if taken >= count:
            size = math.log2(length + len(tail) + 1)
            said = words.total()
            carried += said * size - sum(n * math.log2(tail[word] + 1) for word, n in words.items())
            most += said * size
            if carried < novelty * most:
                break
        tail.update(words)
        length += words.total()
        taken += 1
    return max(taken, count)


def words_of(text: str) -> Words:
    """The words of a text, without case and accents, and the pairs of its CJK characters."""
    words, runs = split_words(text)
    return Counter([*words, *(pair for run in runs for pair in windows(run, 2))])


def _words(message: Message) -> Words:
    return words_of(stored_content(message))


def _newest_first(
    window: ContextWindow, said: Sequence[ContextEntry], seen: Callable[[Message], Seen], name: str = ""
) -> Iterator[Seen]:
    """What is seen of messages, read as far back as it is asked for; what an earlier tail looked at is known."""
    known = window.turns
    for stop in range(len(said), 0, -_BLOCK):
        ids = [entry.item_id for entry in said[max(0, stop - _BLOCK) : stop]]
        if unread := [one for one in ids if name + one not in known]:
            if len(known) > _KNOWN:
                known.clear()
                unread = ids
            for message in window.messages(unread):
                known[name + message.message_id] = seen(message)
        yield from [known[name + one] for one in reversed(ids)]
