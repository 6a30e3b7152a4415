"""What a context, or a choice of messages that stands in for one, shows of a conversation's facts."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval.measures.measure import REPORT_TOKENS
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.ledger import Ledger
from lcm.compaction.facts.reading import is_result
from lcm.compaction.summarizer.sentences import sentences
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.summary import Summary
from lcm.transcript.passages import SAID, text_of


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


def whole_history(said: Sequence[Message]) -> ShownWords:
    return ShownWords(tuple(one.message_id for one in said), (), sum(map(tokens_of, said)))


def last_messages(said: Sequence[Message], budget_tokens: int) -> ShownWords:
    """The newest messages, up to the first that does not fit."""
    kept, used = list[str](), 0
    for message in reversed(said):
        used += tokens_of(message)
        if used > budget_tokens:
            return ShownWords(tuple(kept), (), used - tokens_of(message))
        kept.append(message.message_id)
    return ShownWords(tuple(kept), (), used)


def truncated(said: Sequence[Message], budget_tokens: int) -> ShownWords:
    """The history from its beginning, cut where the budget ends."""
    kept, used = list[str](), 0
    for message in said:
        tokens = tokens_of(message)
        if used + tokens > budget_tokens:
            words = "" if is_result(message) else _told(message)
            cut = words[: len(words) * (budget_tokens - used) // tokens]
            return ShownWords(tuple(kept), (cut,) if cut.strip() else (), budget_tokens)
        kept.append(message.message_id)
        used += tokens
    return ShownWords(tuple(kept), (), used)


def oracle_selection(said: Sequence[Message], ledger: Ledger, budget_tokens: int) -> ShownWords:
    """The messages that state most facts a token, chosen one after another by what none before states: what choosing
    whole messages can reach, or nearly."""
    by_message: dict[str, set[tuple[str, str]]] = {}
    for fact in ledger.facts.values():
        for message_id in fact.message_ids:
            by_message.setdefault(message_id, set()).add(fact.subject)
    left = {one.message_id: max(1, tokens_of(one)) for one in said if one.message_id in by_message}
    kept, used, known = list[str](), 0, set[tuple[str, str]]()
    while left:
        best = max(left, key=lambda one: len(by_message[one] - known) / left[one])
        tokens = left.pop(best)
        if used + tokens <= budget_tokens and by_message[best] - known:
            kept.append(best)
            known |= by_message[best]
            used += tokens
    return ShownWords(tuple(kept), (), used)


def filler_tokens(shown: ShownWords, said: Mapping[str, Message]) -> int:
    """The tokens of the sentences and lines that state no fact."""
    return sum(_filler(_told(said[one])) for one in shown.message_ids) + sum(map(_filler, shown.texts))


def tokens_of(message: Message) -> int:
    return _tokens(_told(message))


def _told(message: Message) -> str:
    """The words of a message, its calls and its results."""
    return text_of(message, SAID)


@lru_cache(maxsize=50_000)
def _tokens(text: str) -> int:
    return REPORT_TOKENS.count([text])[0]


@lru_cache(maxsize=50_000)
def _filler(text: str) -> int:
    stated = [one.start for one in statements_in(text)]
    return _tokens("".join(_stating_nothing(text, stated)))


def _stating_nothing(text: str, stated: Collection[int]) -> Iterator[str]:
    place, starts = 0, sorted(stated)
    for piece in sentences(text):
        end = place + len(piece)
        if not any(place <= one < end for one in starts):
            yield piece
        place = end
