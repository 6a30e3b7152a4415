"""How a fact that a context does not hold is got back: by expanding a summary of it, or by a search and a look."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from eval.measures.measure import REPORT_TOKENS
from eval.measures.shown_facts import SaidMessage
from lcm.context.answerer import Extractive
from lcm.context.recall.grep import grep_text
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.memory.memory import Memory

DEFAULT_RECALL = Recall(REPORT_TOKENS, limit=10, answerer=Extractive())
"""`recall=default`, and of a search the ten best messages; what answers questions is never asked here."""


class RecallWay(NamedTuple):
    """A way back to a message."""

    steps: int
    """Calls of tools."""
    tokens: int
    """What they show."""
    message_ids: tuple[str, ...]
    """All messages that are at hand then."""


@dataclass(slots=True)
class RecallWays:
    """The ways back within one conversation, as its memory now stands."""

    memory: Memory
    conversation_id: str
    recall: Recall
    said: Mapping[str, SaidMessage]
    _reader: Reader = field(init=False)
    _above: Mapping[str, str] = field(init=False)
    """A message or summary -> the summary that was made of it."""
    _beneath: Mapping[str, Sequence[str]] = field(init=False)
    _tokens: Mapping[str, int] = field(init=False)
    """A summary -> what expanding it shows."""
    _found: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._reader = self.recall.on(self.memory.store)
        edges = self.memory.store.edges(self.conversation_id)
        self._above = dict(zip(edges["source_id"], edges["summary_id"], strict=True))
        self._tokens = dict(edges.group_by("summary_id").agg(pl.col("tokens").sum()).iter_rows())
        self._beneath = dict(edges.group_by("summary_id", maintain_order=True).agg("source_id").iter_rows())

    def best(self, message_ids: Sequence[str], cues: Sequence[str], shown: Collection[str]) -> RecallWay | None:
        """The way to one of some messages that shows fewest tokens; None = there is none.

        Args:
            cues: the words that somebody searches for, one cue after another until the message is found.
            shown: the summaries of the context.
        """
        ways = [way for one in message_ids if (way := self._by_expansion(one, shown))]
        if (way := self._by_search(message_ids, cues)) is not None:
            ways.append(way)
        return min(ways, key=lambda way: (way.tokens, way.steps), default=None)

    def _by_expansion(self, message_id: str, shown: Collection[str]) -> RecallWay | None:
        """Expand a summary of the context, and what it was made of, down to the message."""
        path, at = list[str](), message_id
        while at in self._above and at not in shown:
            at = self._above[at]
            path.append(at)
        if not path or at not in shown:
            return None
        read = tuple(one for one in self._beneath[path[0]] if one in self.said)
        return RecallWay(len(path), sum(self._tokens[one] for one in path), read)

    def _by_search(self, message_ids: Sequence[str], cues: Sequence[str]) -> RecallWay | None:
        """Search for one cue after another, then read the message that was found."""
        spent = 0
        for steps, cue in enumerate(filter(None, cues), start=2):
            tokens, hits = self._searched(cue)
            spent += tokens
            best = next((one for one in hits if one in message_ids and one in self.said), None)
            if best is not None:
                return RecallWay(steps, spent + self.said[best].tokens, (best,))
        return None

    def _searched(self, cue: str) -> tuple[int, tuple[str, ...]]:
        """The tokens that a search shows, and the messages that it finds."""
        if cue not in self._found:
            found = self._reader.grep(cue, mode="full_text", scope="messages", conversation=self.conversation_id)
            told = grep_text(found, self.recall.max_result_chars)
            self._found[cue] = REPORT_TOKENS.count([told])[0], tuple(hit.message_id for hit in found.messages)
        return self._found[cue]
