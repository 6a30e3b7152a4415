"""What a context, or a choice of messages that stands in for one, shows of a conversation's facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from eval.measures.measure import REPORT_TOKENS
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.ledger import Ledger, Subject
from lcm.compaction.facts.reading import Statement, is_result
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.text import sentences
from lcm.transcript.passages import SAID, text_of
from lcm.transcript.rendering import costed_text, runtime_messages


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
