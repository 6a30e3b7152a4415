"""A conversation as its session went, taken in turn by turn and read at some stops: what contexts show of its facts.

What a context does not hold is got back by expanding a summary of it, or by a search and a look.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import polars as pl

from eval.measures.measure import REPORT_TOKENS
from eval.replay.workspace_replay import turns
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.ledger import Ledger, Subject
from lcm.compaction.facts.reading import Statement, is_result
from lcm.context.answerer import Extractive
from lcm.context.recall.grep import grep_text
from lcm.context.recall.recall import Recall
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message, Transcript
from lcm.records.query import Query, Recalled
from lcm.records.summary import Summary
from lcm.text import sentences
from lcm.transcript.passages import SAID, text_of
from lcm.transcript.rendering import costed_text, runtime_messages

_TEMPORARY = ""
"""A workspace that lies in memory until it is large."""
_RECALL = Recall(REPORT_TOKENS, limit=10, answerer=Extractive())
"""`recall=default`, and of a search the ten best messages; what answers questions is never asked here."""


@dataclass(frozen=True, slots=True)
class ShownWords:
    """Messages that are shown as they were said, and other texts."""

    message_ids: tuple[str, ...]
    texts: tuple[str, ...]
    tokens: int


def shown_by(context: Context, items: Sequence[Message | Summary]) -> ShownWords:
    """What a context shows of the context items of its conversation.

    A summary is read without the marks around it, and a message in which a large file is only named as any other text.
    """
    summaries = {one.summary_id: one.content for one in items if isinstance(one, Summary)}
    whole = {one.message_id for one in items if isinstance(one, Message) and not one.files}
    shown = [item for item in context.items if item.text.strip()]
    return ShownWords(
        tuple(item.item_id for item in shown if item.item_id in whole),
        tuple(summaries.get(item.item_id, item.text) for item in shown if item.item_id not in whole),
        context.tokens,
    )


class SaidMessage(NamedTuple):
    """A message of the raw history, as who is shown it pays for it."""

    message_id: str
    words: str
    """Its words, its calls and its results."""
    tokens: int
    """Of what a model is sent of it, counted as of a message in a context: with its blocks, if it has any."""
    filler_tokens: int
    """Of the sentences and lines that state no fact."""
    is_result: bool


def said_message(message: Message, stated: Sequence[Statement]) -> SaidMessage:
    """A message with what it states, as the ledger has it."""
    words = text_of(message, SAID)
    named = {one.said for one in stated if one.said}
    filler = "".join(piece for piece in sentences(words) if not any(one in piece for one in named))
    sent = "\n".join(map(costed_text, runtime_messages(message)))
    tokens, filler_tokens = REPORT_TOKENS.count([sent, filler])
    return SaidMessage(message.message_id, words, tokens, filler_tokens, is_result(message))


def whole_history(said: Sequence[SaidMessage]) -> ShownWords:
    return ShownWords(tuple(one.message_id for one in said), (), sum(one.tokens for one in said))


def last_messages(said: Sequence[SaidMessage], budget_tokens: int) -> ShownWords:
    """The newest messages, up to the first that does not fit."""
    kept, used = list[str](), 0
    for one in reversed(said):
        if used + one.tokens > budget_tokens:
            break
        used += one.tokens
        kept.append(one.message_id)
    return ShownWords(tuple(kept), (), used)


def truncated(said: Sequence[SaidMessage], budget_tokens: int) -> ShownWords:
    """The history from its beginning, cut where the budget ends; results of tools are not cut within."""
    kept, used = list[str](), 0
    for one in said:
        if used + one.tokens > budget_tokens:
            cut = "" if one.is_result else one.words[: len(one.words) * (budget_tokens - used) // one.tokens]
            return ShownWords(tuple(kept), (cut,) if cut.strip() else (), budget_tokens)
        kept.append(one.message_id)
        used += one.tokens
    return ShownWords(tuple(kept), (), used)


def oracle_selection(said: Sequence[SaidMessage], ledger: Ledger, budget_tokens: int) -> ShownWords:
    """The messages that state most facts a token, chosen one after another by what none before states: what choosing
    whole messages can reach, or nearly."""
    by_message: dict[str, set[Subject]] = {}
    for fact in ledger.facts.values():
        for message_id in fact.message_ids:
            by_message.setdefault(message_id, set()).add(fact.subject)
    left = {one.message_id: max(1, one.tokens) for one in said if one.message_id in by_message}
    kept, used, known = list[str](), 0, set[Subject]()
    while left:
        best = max(left, key=lambda one: len(by_message[one] - known) / left[one])
        tokens = left.pop(best)
        if used + tokens <= budget_tokens and by_message[best] - known:
            kept.append(best)
            known |= by_message[best]
            used += tokens
    return ShownWords(tuple(kept), (), used)


def filler_tokens(shown: ShownWords, said: Mapping[str, SaidMessage]) -> int:
    """The tokens of the sentences and lines that state no fact."""
    return sum(said[one].filler_tokens for one in shown.message_ids) + sum(map(_filler, shown.texts))


@lru_cache(maxsize=10_000)
def _filler(text: str) -> int:
    starts = [one.start for one in statements_in(text)]
    place, filler = 0, ""
    for piece in sentences(text):
        end = place + len(piece)
        filler += "" if any(place <= one < end for one in starts) else piece
        place = end
    return REPORT_TOKENS.count([filler])[0]


@dataclass(frozen=True, slots=True)
class SessionStop:
    """A session up to one of its turns: the memory of it alone, and all that was stated by then."""

    memory: Memory
    conversation_id: str
    ledger: Ledger
    said: Sequence[SaidMessage]
    """So far."""
    number: int
    """How many times compaction was forced by then; where it never is, how many turns were taken."""
    prompt: str = ""
    """What the user says next; at the end, what was said last."""
    next_turn: Sequence[Message] = ()
    """What is said next; empty at the end."""

    def contexts(self, budgets: Sequence[int]) -> list[Context]:
        """What a model would be shown, under each budget, before it answers the prompt."""
        assembly, memory = self.memory.system.assembly, self.memory
        asked_at = memory.store.last_said(self.conversation_id)
        recalled: Sequence[Recalled] = ()
        if assembly.shows_documents:
            memory.catch_up()
            query = Query("next", self.prompt, asked_at, conversation_id=self.conversation_id)
            recalled = memory.recalled(memory.rank([query])).get(query.query_id, ())
        asks = [ContextRequest(budget, self.prompt, recalled, asked_at) for budget in budgets]
        return memory.assemble(self.conversation_id, asks)


def played(
    system: System, transcript: Transcript, cycles: int | None, *, stops_at_turns: bool = False
) -> Iterator[SessionStop]:
    """Take in a conversation, by itself, and stop on the way; nothing is yielded of one that the system leaves out.

    Triggers of compaction look after every turn, as in a live session.

    Args:
        cycles: how many stops, after equal numbers of turns, the last at the end; there compaction is forced, whatever
            the triggers say. None = it never is, and every turn is a stop.
        stops_at_turns: every turn is a stop, whether or not compaction is forced there.
    """
    name, taken = transcript.conversation_id, list(turns(transcript.messages))
    if not taken or not system.session.writes(name, name):
        return
    count = 0 if cycles is None else min(cycles, len(taken))
    forced = {round(len(taken) * number / count): number for number in range(1, count + 1)}
    ledger, said, cycle, last_words = Ledger(), list[SaidMessage](), 0, ""
    with Memory.open(system, _TEMPORARY) as memory:
        for place, turn in enumerate(taken, start=1):
            memory.take_turn(name, turn)
            for message in turn:
                ledger.add(message)
                said.append(said_message(message, ledger.stated[message.message_id]))
                last_words = _asked([message]) or last_words
            if place in forced:
                cycle = forced[place]
                memory.compact([name], is_forced=True)
            if place in forced or stops_at_turns or cycles is None:
                number = place if cycles is None else cycle
                upcoming = taken[place] if place < len(taken) else ()
                yield SessionStop(memory, name, ledger, said, number, _asked(upcoming) or last_words, upcoming)


def _asked(messages: Sequence[Message]) -> str:
    """The first words of the user."""
    return next((one.content for one in messages if one.role == "user" and one.content.strip()), "")


class RecallWay(NamedTuple):
    """A way back to a message."""

    steps: int
    """Calls of tools."""
    tokens: int
    """What they show."""
    message_ids: tuple[str, ...]
    """All messages that are at hand then."""


class RecallWays:
    """The ways back within one conversation, as its memory stands at a stop."""

    def __init__(self, stop: SessionStop) -> None:
        self._conversation_id = stop.conversation_id
        self._said = {one.message_id: one for one in stop.said}
        self._reader = _RECALL.on(stop.memory.store)
        edges = stop.memory.store.edges(stop.conversation_id)
        self._above = dict(zip(edges["source_id"], edges["summary_id"], strict=True))
        """A message or summary -> the summary that was made of it."""
        self._tokens: dict[str, int] = dict(edges.group_by("summary_id").agg(pl.col("tokens").sum()).iter_rows())
        """A summary -> what expanding it shows."""
        self._beneath = dict(edges.group_by("summary_id", maintain_order=True).agg("source_id").iter_rows())
        self._found: dict[str, tuple[int, tuple[str, ...]]] = {}

    def best(self, message_ids: Sequence[str], cues: Sequence[str], shown: Collection[str]) -> RecallWay | None:
        """The way to one of some messages that shows fewest tokens; None = there is none.

        Args:
            cues: the words that somebody searches for, one cue after another until the message is found.
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
        read = tuple(one for one in self._beneath[path[0]] if one in self._said)
        return RecallWay(len(path), sum(self._tokens[one] for one in path), read)

    def _by_search(self, message_ids: Sequence[str], cues: Sequence[str]) -> RecallWay | None:
        """Search for one cue after another, then read the message that was found."""
        spent = 0
        for steps, cue in enumerate(filter(None, cues), start=2):
            tokens, hits = self._searched(cue)
            spent += tokens
            best = next((one for one in hits if one in message_ids and one in self._said), None)
            if best is not None:
                return RecallWay(steps, spent + self._said[best].tokens, (best,))
        return None

    def _searched(self, cue: str) -> tuple[int, tuple[str, ...]]:
        """The tokens that a search shows, and the messages that it finds."""
        if cue not in self._found:
            found = self._reader.grep(cue, mode="full_text", scope="messages", conversation=self._conversation_id)
            told = grep_text(found, _RECALL.max_result_chars)
            self._found[cue] = REPORT_TOKENS.count([told])[0], tuple(hit.message_id for hit in found.messages)
        return self._found[cue]
