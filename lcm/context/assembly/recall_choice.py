"""Which of what was recalled is shown: rules first, then what ranking found, then what was recovered.

Source: the assembly of libravdb memory 1.4.4.
"""

import math
from collections import ChainMap
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lcm.context.assembly.budget_shares import first_fit, longest_prefix
from lcm.context.assembly.memory_header import MemoryText, Section
from lcm.context.assembly.pricing import Price, Pricing
from lcm.protocols.retrieval import Recovery, Signals
from lcm.records.context import ContextTier, LeftOut
from lcm.records.query import Recalled

_SPOKEN = ("message", "guidance")
"""Kinds of documents that somebody said."""


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


class RecallBudget(NamedTuple):
    """The tokens that a context has for recalled documents."""

    memory_tokens: float
    """The whole budget of the memory."""
    left_tokens: float
    """Of it, for what is recalled."""
    guidance_tokens: float
    """Of that, what rules may take."""


class RecallRules(NamedTuple):
    """The rules by which recalled documents are packed into a context."""

    pricing: Pricing
    recovery: Recovery
    overdraws: bool = False
    """What was recovered takes its whole reserve, also where the budget has less left."""

    def dreams(self, answer: Sequence[Recalled], room: RecallBudget) -> RecallChoice:
        """Choose for a question about dreams: nothing but dreams answers it."""
        dreams = [one for one in distinct(answer, ()) if one.kind == "dream"]
        told = self._prefix(dreams, "recalled", room.left_tokens)
        return RecallChoice(recalled=told.chosen, left_out=_left_out(answer, [told], is_dream=True))

    def choose(
        self,
        prompt: str,
        answer: Sequence[Recalled],
        room: RecallBudget,
        tail_ids: Collection[str],
        now: datetime,
        *,
        has_session: bool,
    ) -> RecallChoice:
        """Choose from an answer, best first.

        Args:
            prompt: what was asked.
            answer: what ranking found, what was recovered among it.
            room: what there is for it.
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
        reserve = self.recovery.reserve_tokens(prompt, signals, math.floor(room.memory_tokens))
        rules = [one for one in ranked if one.kind == "guidance"]
        guidance = self._prefix(rules, "guidance", max(0.0, min(room.guidance_tokens, room.left_tokens)))
        left = max(0.0, room.left_tokens - guidance.charged)
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
    if not role and one.kind in _SPOKEN and one.scope_class == "durable":
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
