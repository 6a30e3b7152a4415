"""Contexts of what was authored, the newest turns word for word, protected rules, and what was recalled.

Source: the continuity assembly of libravdb memory 1.3.17; its own choices are `conf/assembly/libravdb.yaml`.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.context.assembly.parts import (
    BudgetShares,
    MemoryText,
    Price,
    Pricing,
    Shares,
    Source,
    entry,
    first_fit,
    header,
    longest_prefix,
)
from lcm.context.assembly.shown_items import AHEAD, ShownItems, cleaned, pruned, texts
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TokenEstimator
from lcm.protocols.retrieval import Recovery, Signals
from lcm.records.context import Context, ContextItem, ContextTier, LeftOut
from lcm.records.conversation import Message
from lcm.records.document import SPOKEN_KINDS, AuthoredNode
from lcm.records.query import Recalled
from lcm.records.rules import VersionedRules
from lcm.records.summary import Summary
from lcm.retrieval.recovery.fetch import NoRecovery
from lcm.store.summaries import item_ids, messages_in
from lcm.transcript.message_tokens import message_tokens
from lcm.transcript.parts import recorded_bundle
from lcm.transcript.passages import utterance
from lcm.transcript.rendering import RuntimeMessage, rendered, turn_of
from lcm.writing.dream import asks_for_dreams


class TailTurns(Sequence[Turn]):
    """Messages, and what each takes of a budget: as an agent's message, or as an entry."""

    def __init__(
        self, messages: Sequence[Message], estimator: TokenEstimator, *, as_entries: bool, source: Source = "session"
    ) -> None:
        self.messages = messages
        self._source: Source = source
        self._estimator = estimator
        self._shown = None if as_entries else ShownItems(messages, estimator, ZoneInfo("UTC"))
        self._entries: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, place: Any) -> Any:
        message = self.messages[place]
        bundle = recorded_bundle(message) or turn_of(message)
        if self._shown is None:
            return Turn(self._entry_tokens(place), message.role, bundle)
        shown = self._shown[place]
        return Turn(shown.tokens, "tool" if shown.results else message.role, bundle)

    def agent_messages(self, first: int) -> tuple[list[RuntimeMessage], dict[int, str]]:
        """The messages from a place on as a model is sent them, results behind their calls; and what each place says
        there, where it is not left out. None where they are shown as entries."""
        if self._shown is None:
            return [], {}
        chosen = [placed for place in range(first, len(self)) for placed in self._shown[place].messages]
        standing = pruned(chosen, first, self._shown, "corrected")
        messages = cleaned(standing, "corrected")
        return [placed.message for placed in messages], texts(standing, messages)

    def _entry_tokens(self, place: int) -> int:
        if place not in self._entries:
            places = [at for at in range(max(0, place + 1 - AHEAD), place + 1) if at not in self._entries]
            words = [self.messages[at] for at in places]
            counts = message_tokens(words, lambda message: entry_of(message, self._source), self._estimator)
            self._entries.update(zip(places, counts, strict=True))
        return self._entries[place]


def entry_of(message: Message, source: Source = "session") -> str:
    """A message as an entry; one that holds only calls shows them."""
    return entry(utterance(message), message.role, source)


@dataclass(frozen=True, slots=True)
class Continuity:
    """Shows hard authored text and the newest turns always, and in what they leave: soft authored text, more turns,
    protected rules, what ranking found, and what was fetched because ranking failed.

    A question about dreams is answered by authored text and dreams alone, where a dream was recalled, and by the rules
    of 1.4.4 where none was.

    Budgets are of the parts as they are counted one by one. An estimator for which a whole text is no sum of its parts
    may count the rendered context higher.

    Source: libravdb memory, its documents (`rules` original) and its code of 1.4.4 (1.4.4):

    | | corrected | original | 1.4.4 |
    |---|---|---|---|
    | the tail is shown as | messages, all else in the header | messages of the system, and in the header | likewise |
    | counted is | every part as it is shown | the messages alone | likewise |
    | hard text above its share | is refused | is shown with the newest turns alone | likewise |
    | kept from the tail | all that soft text could claim | what soft text takes | likewise |
    | boundary of the tail | one unit is completed | likewise | all that alternates comes along |
    | a turn is weighed for the tail | as it is shown | likewise | as an entry that was recalled |
    | what was recovered takes | of its reserve what the budget has left | likewise | its reserve, beyond the budget |
    """

    token_estimator: TokenEstimator
    recovery: Recovery = field(default_factory=NoRecovery)
    """What is kept for turns that were fetched because ranking failed, and in which order they come."""
    token_budget_fraction: float = 1.0
    """Of what is asked for, the memory's own budget."""
    shares: BudgetShares = field(default_factory=BudgetShares)
    tail: RecentTail = field(default_factory=RecentTail)
    rules: VersionedRules = "corrected"
    shows_documents = True
    reads_prompts = True

    def __post_init__(self) -> None:
        check_range(self, "token_budget_fraction", gt=0, le=1)
        check_choice(self, rules=VersionedRules)

    @property
    def is_shown_twice(self) -> bool:
        return self.rules != "corrected"

    def rendered(self, message: Message) -> str:
        """The text whose tokens a message costs in a context."""
        return entry_of(message) if self.is_shown_twice else rendered(message)

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        """Choose what fits from the conversation, what each ask recalled, and what was authored.

        Raises:
            OversizedHardError: if hard authored text takes more than it may, by the corrected rules.
        """
        packing = _Packing(self, items, authored)
        return [packing.context(ask) for ask in asks]

    def tail_message_ids(
        self,
        items: Sequence[Message | Summary],
        budget_tokens: int,
        authored: Sequence[AuthoredNode] = (),
        prompt: str = "",
    ) -> list[str]:
        """The messages that a context shows word for word, whatever is recalled: a search may leave them out.

        None for a question about dreams: it depends on whether a dream is recalled.
        """
        packing = _Packing(self, items, authored)
        turns, shares = packing.shared(budget_tokens, asks_for_dreams(prompt))
        return [message.message_id for message in turns.messages[shares.tail.recent :]]


class _Worded(NamedTuple):
    """One item of a context, how it is worded, and what the parts behind its own have less for it."""

    item: ContextItem
    memory: MemoryText
    charged: float = 0.0


class _Packed(NamedTuple):
    """The recalled documents that were packed into a part of a context, and why others were not."""

    shown: Sequence[_Worded] = ()
    left_out: Mapping[str, LeftOut] = {}
    signals: Signals = Signals(False, False, False, False)
    reserve_tokens: int = 0
    """Kept for recovered ones."""

    @property
    def charged(self) -> float:
        return sum(one.charged for one in self.shown)


class _Tail(NamedTuple):
    """The newest turns as contexts of one budget show them."""

    ids: Sequence[str]
    """Of their messages."""
    shown: Sequence[_Worded]
    messages: Sequence[RuntimeMessage]
    """As a model is sent them; none where they are shown as entries."""
    left_out: Mapping[str, LeftOut]
    """What stands before them in the conversation."""


class _Packing:
    """One conversation, packed for one ask after another. What asks of one budget share is made once."""

    def __init__(self, rules: Continuity, items: Sequence[Message | Summary], authored: Sequence[AuthoredNode]) -> None:
        self._rules = rules
        self._ids = item_ids(items)
        self._is_twice = rules.is_shown_twice
        self._is_code = rules.rules == "1.4.4"
        estimator, messages = rules.token_estimator, messages_in(items)
        self._turns = TailTurns(messages, estimator, as_entries=self._is_twice)
        self._weighed = TailTurns(messages, estimator, as_entries=True, source="recalled") if self._is_code else None
        self._no_turns = TailTurns((), estimator, as_entries=self._is_twice)
        self._pricing = Pricing(estimator, is_twice=self._is_twice)
        hard, soft = ([node for node in authored if node.tier == tier] for tier in ("hard", "soft"))
        nodes = [*hard, *soft]
        remembered = [MemoryText("hard" if node.tier == "hard" else "soft", node.text) for node in nodes]
        prices = self._pricing.prices("authored_context", remembered, counted=[node.tokens for node in nodes])
        worded = [self._item(*one) for one in zip((node.node_id for node in nodes), remembered, prices, strict=True)]
        self._hard, self._soft = worded[: len(hard)], worded[len(hard) :]
        self._soft_prices = prices[len(hard) :]
        self._hard_tokens = [price.shown for price in prices[: len(hard)]]
        self._shared: dict[tuple[int, bool], Shares] = {}
        self._tails: dict[tuple[int, bool], _Tail] = {}
        self._said: dict[MemoryText, MemoryText] = {}
        """What was recalled before: many asks recall the same."""
        self._documents: dict[Hashable, _Worded] = {}
        """As they were shown before: contexts of several budgets show the same."""
        self._last: tuple[Sequence[Recalled], tuple[list[MemoryText], list[Price]]] = (), ([], [])
        """What was packed last, how it is worded, what it takes: contexts of several budgets mostly hold the same."""

    def shared(self, budget_tokens: int, is_dream: bool) -> tuple[TailTurns, Shares]:
        """The turns that a tail may hold, and the budget as it is shared out."""
        turns, rules = self._no_turns if is_dream else self._turns, self._rules
        key = budget_tokens, is_dream
        if key not in self._shared:
            memory_tokens = max(0, budget_tokens) * rules.token_budget_fraction
            weighed = None if is_dream else self._weighed
            self._shared[key] = rules.shares.share(
                memory_tokens, self._hard_tokens, self._soft_prices, turns, rules.tail, rules.rules, weighed
            )
        return turns, self._shared[key]

    def context(self, ask: ContextRequest) -> Context:
        is_dream = asks_for_dreams(ask.prompt) and (self._is_code or any(one.kind == "dream" for one in ask.recalled))
        turns, shares = self.shared(ask.budget_tokens, is_dream)
        tail = self._tail(turns, shares.tail.recent, is_dream)
        recalled = self._recalled(ask, is_dream, shares, tail.ids)
        hard, soft, recent, said = self._hard, self._soft[: shares.soft], tail.shown, tail.messages
        notes = _notes(shares, recalled) | {"base_turns": len(turns) - shares.tail.base}
        if self._is_twice:
            base = shares.tail.base - shares.tail.recent
            injected = [*hard, *recent[base:], *soft, *recent[:base], *recalled.shown]
            said = [{"role": "system", "content": one.memory.as_message} for one in injected]
            notes["injection_order"] = [one.item.item_id for one in injected]
        in_header = [*hard, *soft, *(recent if self._is_twice else ()), *recalled.shown]
        shown = [one.item for one in (*hard, *soft, *recent, *recalled.shown)]
        tokens = sum(item.tokens for item in shown)
        return Context(
            items=tuple(shown),
            tokens=tokens,
            budget_tokens=ask.budget_tokens,
            messages=tuple(said),
            system_note=header([one.memory for one in in_header], shares.degraded),
            evicted=len(self._ids) - len(recent),
            left_out={**tail.left_out, **_not_recalled(recalled, shares, tokens)},
            is_degraded=bool(shares.degraded) or shares.exceeds(tokens),
            notes=notes,
        )

    def _tail(self, turns: TailTurns, first: int, is_dream: bool) -> _Tail:
        if (first, is_dream) not in self._tails:
            ids = [message.message_id for message in turns.messages[first:]]
            messages, words = turns.agent_messages(first)
            shown = [self._turn(turns, place, words.get(place, "")) for place in range(first, len(turns))]
            left_out = dict.fromkeys(self._ids, LeftOut("dreams" if is_dream else "tail"))
            for shown_id in ids:
                left_out.pop(shown_id, None)
            self._tails[first, is_dream] = _Tail(ids, shown, messages, left_out)
        return self._tails[first, is_dream]

    def _recalled(self, ask: ContextRequest, is_dream: bool, shares: Shares, tail_ids: Collection[str]) -> _Packed:
        """Pack an answer, best first: rules, what ranking found, what was recovered; for a question about dreams
        nothing but dreams.

        Args:
            tail_ids: the messages that are shown already: what stands only for such is left out.
        """
        if shares.degraded:
            return _Packed(left_out={one.document_id: LeftOut("degraded") for one in ask.recalled})
        if is_dream:
            dreams = [one for one in _distinct(ask.recalled, ()) if one.kind == "dream"]
            return _joined(ask.recalled, self._prefix(dreams, shares.left_tokens), is_dream=True)
        awake = [one for one in ask.recalled if one.kind != "dream"]
        ranked = list(_distinct((one for one in awake if not one.is_recovered), tail_ids))
        recovery = self._rules.recovery
        signals = recovery.signals(ranked, bool(self._ids))
        if not signals.has_failed and any(one.is_recovered for one in awake):
            # Ranking fetched them for a question that names no session; the context that answers it has one.
            signals = signals._replace(is_elsewhere=True)
        reserve = recovery.reserve_tokens(ask.prompt, signals, math.floor(shares.memory_tokens))
        rules = [one for one in ranked if one.kind == "guidance"]
        room = min(shares.memory_tokens * self._rules.shares.guidance_fraction, shares.left_tokens)
        guidance = self._prefix(rules, max(0.0, room), is_guidance=True)
        left = max(0.0, shares.left_tokens - guidance.charged)
        shown_ids = {*tail_ids, *(source for one in guidance.shown for source in one.item.source_message_ids)}
        others = _distinct((one for one in ranked if one.kind != "guidance"), shown_ids)
        found = self._prefix(list(others), max(0.0, left - reserve))
        left = max(0.0, left - found.charged)
        taken_ids = {one.item.item_id for one in (*guidance.shown, *found.shown)}
        taken = {_words(one) for one in ranked if one.document_id in taken_ids}
        fetched = _distinct((one for one in awake if one.is_recovered and _words(one) not in taken), shown_ids)
        # By the original's code what was recovered takes its whole reserve, also where the budget has less left.
        room = reserve if self._is_code else min(reserve, left)
        recovered = self._recovered(ask, list(fetched), room, len(found.shown))
        whole = _joined(ask.recalled, guidance, found, recovered, is_dream=False)
        return whole._replace(signals=signals, reserve_tokens=reserve)

    def _prefix(self, ones: Sequence[Recalled], budget_tokens: float, *, is_guidance: bool = False) -> _Packed:
        if not ones:
            return _Packed()
        shown, prices = self._priced(ones, is_guidance=is_guidance)
        fits = longest_prefix((price.packed for price in prices), budget_tokens) if budget_tokens > 0 else 0
        chosen = [self._document(*one) for one in zip(ones[:fits], shown, prices, strict=False)]
        if fits == len(ones):
            return _Packed(chosen)
        first, room = ones[fits].document_id, max(0.0, budget_tokens) - sum(price.packed for price in prices[:fits])
        left_out = {one.document_id: LeftOut("behind", behind=first) for one in ones[fits:]}
        return _Packed(chosen, left_out | {first: LeftOut("share", prices[fits].packed, room)})

    def _priced(self, ones: Sequence[Recalled], *, is_guidance: bool) -> tuple[list[MemoryText], list[Price]]:
        """How documents are worded, and what they take."""
        if is_guidance:
            shown = [self._remembered(one, is_guidance=True) for one in ones]
            return shown, self._pricing.prices("elevated_guidance", shown, counted=[one.tokens for one in ones])
        if self._last[0] != ones:
            shown = [self._remembered(one) for one in ones]
            self._last = ones, (shown, self._pricing.prices("recalled_memories", shown))
        return self._last[1]

    def _recovered(self, ask: ContextRequest, ones: Sequence[Recalled], budget_tokens: float, before: int) -> _Packed:
        if not ones:
            return _Packed()
        shown = [self._remembered(one, is_recovered=True) for one in ones]
        # No label gets longer than the one it is priced with: what does not fit only moves the others up.
        prices = self._pricing.prices("recalled_memories", shown, before=max(before, 1))
        packed = [price.packed for price in prices]
        if budget_tokens <= 0:
            return _Packed(
                (), {one.document_id: LeftOut("share", cost) for one, cost in zip(ones, packed, strict=True)}
            )
        frame = 0 if before else self._pricing.frame_tokens("recalled_memories")
        room = math.floor(budget_tokens - frame)
        now = ask.asked_at or self._last_instant()
        order = self._rules.recovery.order(ask.prompt, ones, [math.ceil(cost) for cost in packed], max(0, room), now)
        kept = [order[place] for place in first_fit([packed[place] for place in order], room)]
        frames = [frame, *[0] * len(kept)]
        chosen = [self._document(ones[p], shown[p], prices[p], more) for p, more in zip(kept, frames, strict=False)]
        room_left = max(0.0, room - sum(packed[place] for place in kept))
        left_out = {one.document_id: LeftOut("passed over") for one in ones}
        left_out |= {ones[place].document_id: LeftOut("share", packed[place], room_left) for place in order}
        return _Packed(chosen, left_out)

    def _remembered(self, one: Recalled, *, is_guidance: bool = False, is_recovered: bool = False) -> MemoryText:
        role = one.role
        if not role and one.kind in SPOKEN_KINDS and one.scope_class == "durable":
            role = "user"
        tier: ContextTier = "guidance" if is_guidance else "recovered" if is_recovered else "recalled"
        said = MemoryText(tier, one.text_with_related, role, one.created_at)
        return self._said.setdefault(said, said)

    def _last_instant(self) -> datetime:
        newest_first = (message.created_at for message in reversed(self._turns.messages))
        return next((instant for instant in newest_first if instant is not None), EPOCH)

    def _item(self, name: str, one: MemoryText, price: Price) -> _Worded:
        text = self._text(one)
        return _Worded(ContextItem("document", name, text, int(price.shown), context_tier=one.context_tier), one)

    def _turn(self, turns: TailTurns, place: int, words: str) -> _Worded:
        message = turns.messages[place]
        one = MemoryText("tail", utterance(message), message.role, message.created_at)
        if self._is_twice:
            words = self._text(one) if one.text.strip() else ""  # an entry around nothing shows nothing
        tokens = int(turns[place].tokens)
        item = ContextItem("message", message.message_id, words, tokens, in_tail=True, context_tier="tail")
        return _Worded(item, one)

    def _document(self, one: Recalled, shown: MemoryText, price: Price, frame_tokens: int = 0) -> _Worded:
        key = one.document_id, one.source_message_ids, shown, price, frame_tokens
        if key not in self._documents:
            item = ContextItem(
                "document",
                one.document_id,
                self._text(shown),
                int(price.packed + frame_tokens),
                context_tier=shown.context_tier,
                source_message_ids=one.source_message_ids,
            )
            self._documents[key] = _Worded(item, shown, price.shown)
        return self._documents[key]

    def _text(self, one: MemoryText) -> str:
        return one.as_message if self._is_twice else one.as_line


def _distinct(ones: Iterable[Recalled], shown_ids: Collection[str]) -> Iterable[Recalled]:
    """Leave out what comes again, and what stands only for messages that are shown."""
    seen, standing = set[str](), set(shown_ids)
    for one in ones:
        is_shown = bool(one.source_message_ids) and standing.issuperset(one.source_message_ids)
        if not is_shown and one.document_id not in seen:
            seen.add(one.document_id)
            yield one


def _words(one: Recalled) -> tuple[str, tuple[str, ...] | str]:
    """What it says, and of which messages: a turn and the document made of it say the same."""
    return one.text, one.source_message_ids or one.document_id


def _joined(answer: Iterable[Recalled], *parts: _Packed, is_dream: bool) -> _Packed:
    """Parts as one, with why each document of an answer is in none; of those that are kept from them, by their kind."""
    shown = [one for part in parts for one in part.shown]
    ids = {one.item.item_id for one in shown}
    told = {name: why for part in reversed(parts) for name, why in part.left_out.items()}
    left_out = {
        one.document_id: told.get(one.document_id, LeftOut("shown" if (one.kind == "dream") == is_dream else "dreams"))
        for one in answer
        if one.document_id not in ids
    }
    return _Packed(shown, left_out)


def _not_recalled(recalled: _Packed, shares: Shares, tokens: float) -> dict[str, LeftOut]:
    """Why recalled documents are not shown in a context of so many tokens: where the whole budget lacks room, that is
    told and not the share."""
    return {
        name: told._replace(reason="budget")
        if told.reason == "share" and shares.exceeds(tokens + told.tokens)
        else told
        for name, told in recalled.left_out.items()
    }


def _notes(shares: Shares, recalled: _Packed) -> dict[str, Any]:
    return {
        "memory_tokens": shares.memory_tokens,
        "hard_tokens": shares.hard_tokens,
        "base_tokens": shares.base_tokens,
        "tail_tokens": shares.tail_tokens,
        "soft_tokens": shares.soft_tokens,
        "left_tokens": shares.left_tokens,
        "reserve_tokens": recalled.reserve_tokens,
        "has_failed": recalled.signals.has_failed,
        "is_elsewhere": recalled.signals.is_elsewhere,
        "degraded": list(shares.degraded),
    }
