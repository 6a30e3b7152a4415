"""Contexts of what was authored, the newest turns word for word, protected rules, and what was recalled.

Source: the continuity assembly of libravdb memory 1.3.17; its own choices are `conf/assembly/libravdb.yaml`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from lcm.checks import check_choice, check_range
from lcm.clock import EPOCH
from lcm.compaction.recent_tail import RecentTail
from lcm.context.assembly.budget_shares import AuthoredCosts, BudgetShares, Shares
from lcm.context.assembly.memory_header import MemoryText, header, line_text, message_text, sections
from lcm.context.assembly.pricing import Price, Pricing
from lcm.context.assembly.recall_choice import ChosenDocument, RecallBudget, RecallChoice, RecallRules
from lcm.context.assembly.tail_turns import TailTurns, entry_of
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TokenEstimator
from lcm.protocols.retrieval import Recovery
from lcm.records.context import Context, ContextItem, LeftOut
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.rules import VersionedRules
from lcm.records.summary import Summary
from lcm.retrieval.recovery.none import NoRecovery
from lcm.store.context import item_ids, messages_in
from lcm.transcript.passages import utterance
from lcm.transcript.rendering import storage_shape
from lcm.writing.dream.query import asks_for_dreams


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
        return entry_of(message) if self.is_shown_twice else storage_shape.rendered(message)

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
            soft = AuthoredCosts(
                [price.shown for price in self._soft_prices], [price.packed for price in self._soft_prices]
            )
            hard = [price.shown for price in self._hard_prices]
            rules = self._rules
            weighed = None if is_dream else self._weighed
            self._shared[key] = rules.shares.share(memory_tokens, hard, soft, turns, rules.tail, rules.rules, weighed)
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
        room = RecallBudget(shares.memory_tokens, shares.left_tokens, guidance_tokens)
        rules = RecallRules(self._pricing, self._rules.recovery, overdraws=self._is_code)
        if is_dream:
            return rules.dreams(ask.recalled, room)
        now = ask.asked_at or self._last_instant()
        return rules.choose(ask.prompt, ask.recalled, room, tail_ids, now, has_session=bool(self._items))

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
