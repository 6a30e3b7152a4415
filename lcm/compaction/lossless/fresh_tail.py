"""The fresh tail: the newest raw messages, which compaction leaves alone; how many may depend on what they say.

Source: the count is lossless-claw's, 0.6.3. To choose a tail by entropy instead of a fixed number of turns is named as
a refinement in libravdb memory's document of compaction, without a formula; the measure of novelty is ours.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from lcm.compaction.context_totals import totals_of
from lcm.compaction.lossless.planning import tail_start
from lcm.protocols.compaction import ContextWindow
from lcm.records.summary import ContextEntry
from lcm.retrieval.text_index.words import split_words, windows
from lcm.transcript.rendering.storage_shape import stored_content

_BLOCK = 8
"""Messages that are read at once."""
_KNOWN = 1024
"""Messages whose words are remembered, before they are counted anew."""

Words = Counter[str]


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

    def start(self, window: ContextWindow) -> int:
        """The place of the tail's first entry in the context."""
        totals = totals_of(window.entries)
        if self.max_count is None:
            return tail_start(totals, self.count)
        newest = reversed(totals[-self.max_count :] if self.max_count else [])
        said = list(takewhile(lambda entry: entry.is_message, newest))[::-1]
        return tail_start(totals, chosen_count(_newest_first(window, said), self.count, self.novelty))

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


def _newest_first(window: ContextWindow, said: Sequence[ContextEntry]) -> Iterator[Words]:
    """The words of messages, read as far back as they are asked for; what an earlier tail looked at is known."""
    known = window.turns
    for stop in range(len(said), 0, -_BLOCK):
        entries = said[max(0, stop - _BLOCK) : stop]
        if unread := [entry.item_id for entry in entries if entry.item_id not in known]:
            if len(known) > _KNOWN:
                known.clear()
                unread = [entry.item_id for entry in entries]
            for message in window.messages(unread):
                known[message.message_id] = words_of(stored_content(message))
        yield from [known[entry.item_id] for entry in reversed(entries)]
