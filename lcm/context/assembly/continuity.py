"""Contexts of what was authored, the newest turns word for word, protected rules, and what was recalled.

Source: the continuity assembly of libravdb memory 1.3.17; its own choices are `conf/assembly/libravdb.yaml`.
"""

import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, overload
from zoneinfo import ZoneInfo

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.compaction.recent_tail import RecentTail, Turn
from lcm.context.assembly.budget_shares import BudgetShares, Price, Shares, first_fit, longest_prefix
from lcm.context.assembly.memory_header import (
    MemoryText,
    Pricing,
    Section,
    Source,
    entry,
    header,
    line_text,
    message_text,
    sections,
)
from lcm.context.assembly.shown_items import AHEAD, Piece, ShownItems, cleaned, pruned
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TokenEstimator
from lcm.protocols.retrieval import Recovery, Signals
from lcm.records.context import Context, ContextItem, ContextTier, LeftOut
from lcm.records.conversation import Message
from lcm.records.document import SPOKEN_KINDS, AuthoredNode
from lcm.records.query import Recalled
from lcm.records.rules import VersionedRules
from lcm.records.summary import Summary
from lcm.retrieval.recovery.none import NoRecovery
from lcm.store.context import item_ids, messages_in
from lcm.transcript.message_tokens import message_tokens
from lcm.transcript.parts import recorded_bundle
from lcm.transcript.passages import utterance
from lcm.transcript.rendering import RuntimeMessage, readable_text, rendered, turn_of
from lcm.writing.dream.query import asks_for_dreams


class ChosenDocument(NamedTuple):
    """A recalled document that a context shows, as it is worded there, with its tokens."""

    document: Recalled
    memory: MemoryText
    tokens: float
    charged: float
    """What the parts behind its own have less for it: its tokens as they are counted, not as they are packed by."""


class RecallChoice(NamedTuple):
    """The recalled documents that a context shows, and the tokens reserved for recovered ones."""

    guidance: Sequence[ChosenDocument] = ()
    recalled: Sequence[ChosenDocument] = ()
    recovered: Sequence[ChosenDocument] = ()
    signals: Signals = Signals(False, False, False, False)
    reserve_tokens: int = 0
    left_out: Mapping[str, LeftOut] = {}
    """By document, why it is not among them; `share` where its own room does not hold it."""


class _Packed(NamedTuple):
    """What was packed into a part of a context, and what was not."""

    chosen: Sequence[ChosenDocument] = ()
    left_out: Mapping[str, LeftOut] = {}

    @property
    def charged(self) -> float:
        return sum(one.charged for one in self.chosen)


class RecallRules(NamedTuple):
    """The rules by which recalled documents are packed into a context."""

    pricing: Pricing
    recovery: Recovery
    overdraws: bool = False
    """What was recovered takes its whole reserve, also where the budget has less left."""

    def dreams(self, answer: Sequence[Recalled], left_tokens: float) -> RecallChoice:
        """Choose for a question about dreams: nothing but dreams answers it."""
        dreams = [one for one in distinct(answer, ()) if one.kind == "dream"]
        told = self._prefix(dreams, "recalled", left_tokens)
        return RecallChoice(recalled=told.chosen, left_out=_left_out(answer, [told], is_dream=True))

    def choose(
        self,
        prompt: str,
        answer: Sequence[Recalled],
        shares: Shares,
        guidance_tokens: float,
        tail_ids: Collection[str],
        now: datetime,
        *,
        has_session: bool,
    ) -> RecallChoice:
        """Choose from an answer, best first.

        Args:
            prompt: what was asked.
            answer: what ranking found, what was recovered among it.
            shares: of the budget.
            guidance_tokens: what rules may take of what they leave.
            tail_ids: the messages that are shown already: what stands only for such is left out.
            now: when it was asked.
            has_session: something was said in the asker's session, be it folded into summaries by now.
        """
        awake = [one for one in answer if one.kind != "dream"]
        ranked = list(distinct((one for one in awake if not one.is_recovered), tail_ids))
        signals = self.recovery.signals(ranked, has_session)
        if not signals.has_failed and any(one.is_recovered for one in awake):
            # Ranking fetched them for a question that names no session; the context that answers it has one.
            signals = signals._replace(is_elsewhere=True)
        reserve = self.recovery.reserve_tokens(prompt, signals, math.floor(shares.memory_tokens))
        rules = [one for one in ranked if one.kind == "guidance"]
        guidance = self._prefix(rules, "guidance", max(0.0, min(guidance_tokens, shares.left_tokens)))
        left = max(0.0, shares.left_tokens - guidance.charged)
        shown_ids = {
            *tail_ids,
            *(source for chosen in guidance.chosen for source in chosen.document.source_message_ids),
        }
        others = distinct((one for one in ranked if one.kind != "guidance"), shown_ids)
        recalled = self._prefix(list(others), "recalled", max(0.0, left - reserve))
        left = max(0.0, left - recalled.charged)
        taken = {_words(chosen.document) for chosen in (*guidance.chosen, *recalled.chosen)}
        fetched = [one for one in awake if one.is_recovered and _words(one) not in taken]
        room_left = reserve if self.overdraws else min(reserve, left)
        recovered = self._recovered(prompt, list(distinct(fetched, shown_ids)), room_left, len(recalled.chosen), now)
        left_out = _left_out(answer, [guidance, recalled, recovered], is_dream=False)
        return RecallChoice(guidance.chosen, recalled.chosen, recovered.chosen, signals, reserve, left_out)

    def _prefix(self, ones: Sequence[Recalled], context_tier: ContextTier, budget_tokens: float) -> _Packed:
        if not ones:
            return _Packed()
        is_guidance = context_tier == "guidance"
        shown = [memory_text(one, is_guidance=is_guidance) for one in ones]
        section: Section = "elevated_guidance" if is_guidance else "recalled_memories"
        prices = self.pricing.prices(section, shown, counted=[one.tokens for one in ones] if is_guidance else ())
        fits = longest_prefix((price.packed for price in prices), budget_tokens) if budget_tokens > 0 else 0
        chosen = _chosen(ones[:fits], shown[:fits], prices[:fits])
        if fits == len(ones):
            return _Packed(chosen)
        first, room = ones[fits].document_id, max(0.0, budget_tokens) - sum(price.packed for price in prices[:fits])
        left_out = {one.document_id: LeftOut("behind", behind=first) for one in ones[fits:]}
        return _Packed(chosen, left_out | {first: LeftOut("share", prices[fits].packed, room)})

    def _recovered(
        self, prompt: str, ones: Sequence[Recalled], budget_tokens: float, before: int, now: datetime
    ) -> _Packed:
        if not ones:
            return _Packed()
        shown = [memory_text(one, is_recovered=True) for one in ones]
        # No label gets longer than the one it is priced with: what does not fit only moves the others up.
        prices = self.pricing.prices("recalled_memories", shown, before=max(before, 1))
        frame = 0 if before else self.pricing.frame_tokens("recalled_memories")
        room = math.floor(budget_tokens - frame)
        if budget_tokens <= 0:
            return _Packed(
                (), {one.document_id: LeftOut("share", p.packed) for one, p in zip(ones, prices, strict=True)}
            )
        order = self.recovery.order(prompt, ones, [math.ceil(price.packed) for price in prices], max(0, room), now)
        kept = [order[place] for place in first_fit([prices[place].packed for place in order], room)]
        chosen = _chosen([ones[p] for p in kept], [shown[p] for p in kept], [prices[p] for p in kept])
        room_left = max(0.0, room - sum(one.tokens for one in chosen))
        if chosen:
            chosen[0] = chosen[0]._replace(tokens=chosen[0].tokens + frame)
        left_out = {one.document_id: LeftOut("passed over") for one in ones}
        left_out |= {ones[p].document_id: LeftOut("share", prices[p].packed, room_left) for p in order}
        return _Packed(chosen, left_out)


def distinct(ones: Iterable[Recalled], shown_ids: Collection[str]) -> Iterable[Recalled]:
    """Leave out what comes again, and what stands only for messages that are shown."""
    seen: set[str] = set()
    for one in ones:
        is_shown = bool(one.source_message_ids) and all(source in shown_ids for source in one.source_message_ids)
        if not is_shown and one.document_id not in seen:
            seen.add(one.document_id)
            yield one


def memory_text(one: Recalled, *, is_guidance: bool = False, is_recovered: bool = False) -> MemoryText:
    """A document as it is shown."""
    context_tier: ContextTier = "guidance" if is_guidance else "recovered" if is_recovered else "recalled"
    role = one.role
    if not role and one.kind in SPOKEN_KINDS and one.scope_class == "durable":
        role = "user"
    return MemoryText(context_tier, one.text_with_related, role, one.created_at)


def _chosen(ones: Sequence[Recalled], shown: Sequence[MemoryText], prices: Sequence[Price]) -> list[ChosenDocument]:
    return [
        ChosenDocument(one, as_shown, price.packed, price.shown)
        for one, as_shown, price in zip(ones, shown, prices, strict=True)
    ]


def _words(one: Recalled) -> tuple[str, tuple[str, ...] | str]:
    """What it says, and of which messages: a turn and the document made of it say the same."""
    return one.text, one.source_message_ids or one.document_id


def _left_out(answer: Iterable[Recalled], parts: Sequence[_Packed], *, is_dream: bool) -> dict[str, LeftOut]:
    """Why documents are in none of the parts of a context; of those that are kept from them, by their kind."""
    shown = {chosen.document.document_id for part in parts for chosen in part.chosen}
    told = ChainMap(*(dict(part.left_out) for part in parts))
    return {
        one.document_id: told.get(one.document_id, LeftOut("shown" if (one.kind == "dream") == is_dream else "dreams"))
        for one in answer
        if one.document_id not in shown
    }


class TailTurns(Sequence[Turn]):
    """Messages, and what each takes of a budget: as an agent's message, or as an entry."""

    def __init__(
        self, messages: Sequence[Message], estimator: TokenEstimator, *, as_entries: bool, source: Source = "session"
    ) -> None:
        self.messages = messages
        self._source = source
        self._estimator = estimator
        self._shown = None if as_entries else ShownItems(messages, estimator, ZoneInfo("UTC"))
        self._entries: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.messages)

    @overload
    def __getitem__(self, place: int) -> Turn: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Turn]: ...
    def __getitem__(self, place: int | slice) -> Turn | Sequence[Turn]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        message = self.messages[place]
        if self._shown is None:
            return Turn(self._entry_tokens(place), message.role, _bundle(message))
        shown = self._shown[place]
        return Turn(shown.tokens, "tool" if shown.results else message.role, _bundle(message))

    def agent_messages(self, first: int) -> tuple[list[RuntimeMessage], dict[int, str]]:
        """The messages from a place on as a model is sent them, results behind their calls; and what each place says
        there, where it is not left out."""
        if self._shown is None:
            raise TypeError("turns that are shown as entries are no messages of an agent")
        places = range(first, len(self))
        chosen = [placed for place in places for placed in self._shown[place].messages]
        standing = pruned(chosen, first, self._shown, "corrected")
        messages = cleaned(standing, "corrected")
        kept: set[Piece] = {piece for placed in messages for piece in placed.pieces}
        said: dict[int, list[str]] = {}
        for placed in standing:
            if placed.pieces[0] in kept:
                said.setdefault(placed.pieces[0][0], []).append(readable_text(placed.message))
        return [placed.message for placed in messages], {place: "\n".join(texts) for place, texts in said.items()}

    def _entry_tokens(self, place: int) -> int:
        if place not in self._entries:
            places = [at for at in range(max(0, place + 1 - AHEAD), place + 1) if at not in self._entries]
            counts = message_tokens([self.messages[at] for at in places], self._entry, self._estimator)
            self._entries.update(zip(places, counts, strict=True))
        return self._entries[place]

    def _entry(self, message: Message) -> str:
        return entry_of(message, self._source)


def entry_of(message: Message, source: Source = "session") -> str:
    """A message as an entry; one that holds only calls shows them."""
    return entry(utterance(message), message.role, source)


def _bundle(message: Message) -> str:
    """What the message belongs to: the bundle that its record names, or the turn whose piece it is."""
    return recorded_bundle(message) or turn_of(message)


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


class _WordedItem(NamedTuple):
    """One item of a context, and how it is worded."""

    item: ContextItem
    memory: MemoryText


class _Packing:
    """One conversation, packed for one ask after another."""

    def __init__(self, rules: Continuity, items: Sequence[Message | Summary], authored: Sequence[AuthoredNode]) -> None:
        self._rules = rules
        self._items = items
        self._is_twice = rules.is_shown_twice
        self._is_code = rules.rules == "1.4.4"
        messages = messages_in(items)
        self._turns = TailTurns(messages, rules.token_estimator, as_entries=self._is_twice)
        self._weighed = (
            TailTurns(messages, rules.token_estimator, as_entries=True, source="recalled") if self._is_code else None
        )
        self._no_turns = TailTurns((), rules.token_estimator, as_entries=self._is_twice)
        self._pricing = Pricing(rules.token_estimator, is_twice=self._is_twice)
        self._hard = [node for node in authored if node.tier == "hard"]
        self._soft = [node for node in authored if node.tier == "soft"]
        nodes = [*self._hard, *self._soft]
        prices = self._pricing.prices(
            "authored_context", [_as_remembered(node) for node in nodes], counted=[node.tokens for node in nodes]
        )
        self._hard_prices, self._soft_prices = prices[: len(self._hard)], prices[len(self._hard) :]
        self._shared: dict[tuple[int, bool], Shares] = {}
        self._before_tail: dict[tuple[int, bool], dict[str, LeftOut]] = {}

    def shared(self, budget_tokens: int, is_dream: bool) -> tuple[TailTurns, Shares]:
        turns = self._no_turns if is_dream else self._turns
        key = budget_tokens, is_dream
        if key not in self._shared:
            memory_tokens = max(0, budget_tokens) * self._rules.token_budget_fraction
            hard = [price.shown for price in self._hard_prices]
            rules = self._rules
            weighed = None if is_dream else self._weighed
            self._shared[key] = rules.shares.share(
                memory_tokens, hard, self._soft_prices, turns, rules.tail, rules.rules, weighed
            )
        return turns, self._shared[key]

    def context(self, ask: ContextRequest) -> Context:
        is_dream = asks_for_dreams(ask.prompt) and (self._is_code or any(one.kind == "dream" for one in ask.recalled))
        turns, shares = self.shared(ask.budget_tokens, is_dream)
        tail = range(shares.tail.recent, len(turns))
        choice = self._choice(ask, is_dream, shares, [turns.messages[place].message_id for place in tail])
        said: list[Any] = []
        words: Mapping[int, str] = {}
        if not self._is_twice:
            said, words = turns.agent_messages(shares.tail.recent)
        hard = self._authored(self._hard, self._hard_prices)
        soft = self._authored(self._soft[: shares.soft], self._soft_prices)
        recent = [self._turn(turns, place, words.get(place, "")) for place in tail]
        rest = [self._document(chosen) for chosen in (*choice.guidance, *choice.recalled, *choice.recovered)]
        base = shares.tail.base - shares.tail.recent
        injected = [*hard, *recent[base:], *soft, *recent[:base], *rest]
        notes = _notes(shares, choice) | {"base_turns": len(turns) - shares.tail.base}
        if self._is_twice:
            said = [{"role": "system", "content": message_text(one.memory)} for one in injected]
            notes["injection_order"] = [one.item.item_id for one in injected]
        in_header = [*hard, *soft, *(recent if self._is_twice else ()), *rest]
        shown = [one.item for one in (*hard, *soft, *recent, *rest)]
        tokens = sum(item.tokens for item in shown)
        return Context(
            items=tuple(shown),
            tokens=tokens,
            budget_tokens=ask.budget_tokens,
            messages=tuple(said),
            system_note=header(sections([one.memory for one in in_header]), shares.degraded),
            evicted=len(self._items) - len(recent),
            left_out=self._before(shares.tail.recent, is_dream) | _not_recalled(choice, shares, tokens),
            is_degraded=bool(shares.degraded) or shares.exceeds(tokens),
            notes=notes,
        )

    def _choice(self, ask: ContextRequest, is_dream: bool, shares: Shares, tail_ids: Sequence[str]) -> RecallChoice:
        if shares.degraded:
            return RecallChoice(left_out={one.document_id: LeftOut("degraded") for one in ask.recalled})
        guidance_tokens = shares.memory_tokens * self._rules.shares.guidance_fraction
        rules = RecallRules(self._pricing, self._rules.recovery, overdraws=self._is_code)
        if is_dream:
            return rules.dreams(ask.recalled, shares.left_tokens)
        now = ask.asked_at or self._last_instant()
        has_session = bool(self._items)
        return rules.choose(ask.prompt, ask.recalled, shares, guidance_tokens, tail_ids, now, has_session=has_session)

    def _before(self, first: int, is_dream: bool) -> dict[str, LeftOut]:
        """Why what lies before the tail is not shown, which begins with so many messages before it."""
        key = first, is_dream
        if key not in self._before_tail:
            tail = () if is_dream else self._turns.messages[first:]
            shown, told = {message.message_id for message in tail}, LeftOut("dreams" if is_dream else "tail")
            self._before_tail[key] = {name: told for name in item_ids(self._items) if name not in shown}
        return self._before_tail[key]

    def _last_instant(self) -> datetime:
        newest_first = (message.created_at for message in reversed(self._turns.messages))
        return next((instant for instant in newest_first if instant is not None), EPOCH)

    def _authored(self, nodes: Sequence[AuthoredNode], prices: Sequence[Price]) -> list[_WordedItem]:
        found = []
        for node, price in zip(nodes, prices, strict=False):
            one = _as_remembered(node)
            item = ContextItem(
                "document", node.node_id, self._text(one), int(price.shown), context_tier=one.context_tier
            )
            found.append(_WordedItem(item, one))
        return found

    def _turn(self, turns: TailTurns, place: int, words: str) -> _WordedItem:
        message = turns.messages[place]
        one = MemoryText("tail", utterance(message), message.role, message.created_at)
        if self._is_twice:
            words = self._text(one) if one.text.strip() else ""  # an entry around nothing shows nothing
        tokens = int(turns[place].tokens)
        item = ContextItem("message", message.message_id, words, tokens, in_tail=True, context_tier="tail")
        return _WordedItem(item, one)

    def _document(self, chosen: ChosenDocument) -> _WordedItem:
        one = chosen.memory
        item = ContextItem(
            "document",
            chosen.document.document_id,
            self._text(one),
            int(chosen.tokens),
            context_tier=one.context_tier,
            source_message_ids=chosen.document.source_message_ids,
        )
        return _WordedItem(item, one)

    def _text(self, one: MemoryText) -> str:
        return message_text(one) if self._is_twice else line_text(one)


def _as_remembered(node: AuthoredNode) -> MemoryText:
    return MemoryText("hard" if node.tier == "hard" else "soft", node.text)


def _not_recalled(choice: RecallChoice, shares: Shares, tokens: float) -> dict[str, LeftOut]:
    """Why recalled documents are not shown in a context of so many tokens: where the whole budget lacks room, that is
    told and not the share."""
    return {
        name: told._replace(reason="budget")
        if told.reason == "share" and shares.exceeds(tokens + told.tokens)
        else told
        for name, told in choice.left_out.items()
    }


def _notes(shares: Shares, choice: RecallChoice) -> dict[str, Any]:
    return {
        "memory_tokens": shares.memory_tokens,
        "hard_tokens": shares.hard_tokens,
        "base_tokens": shares.base_tokens,
        "tail_tokens": shares.tail_tokens,
        "soft_tokens": shares.soft_tokens,
        "left_tokens": shares.left_tokens,
        "reserve_tokens": choice.reserve_tokens,
        "has_failed": choice.signals.has_failed,
        "is_elsewhere": choice.signals.is_elsewhere,
        "degraded": list(shares.degraded),
    }
