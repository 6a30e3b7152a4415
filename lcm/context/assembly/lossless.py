"""Contexts from messages and summaries: the newest always, of the rest what fits.

Source: the assembler of lossless-claw; the choices of 0.6.3 are `conf/assembly/lossless_claw.yaml`, those of 0.15.3
`conf/assembly/lossless_claw_0_15.yaml`.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lcm.checks import check_choice, check_range
from lcm.collection import collection_paused
from lcm.context.assembly.clamp import Clamp, serialized_tokens
from lcm.context.assembly.clean_up import cleaned, pruned
from lcm.context.assembly.eviction import best_that_fit, newest_that_fit
from lcm.context.assembly.large_results import LargeResults
from lcm.context.assembly.pairing import PairedMessage, Piece
from lcm.context.assembly.recall_cue import names_in, recall_cue
from lcm.context.assembly.relevance import RelevanceIndex
from lcm.context.assembly.runtime_message import costed_text, readable_text
from lcm.context.assembly.shown_items import ShownItems
from lcm.context.assembly.summaries_note import summaries_note
from lcm.context.assembly.tail import Tail, fresh_tail
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TokenEstimator
from lcm.records.context import Context, ContextItem, LeftOut
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.context import summaries_in
from lcm.transcript.rendering import storage_shape

Eviction = Literal["chronological", "relevance"]


@dataclass(frozen=True, slots=True)
class Lossless:
    """Shows the fresh tail, whatever it costs, and of the older items what fits into the rest of the budget.

    Source: lossless-claw 0.6.3 (`rules` original) and 0.15.3 (0.15):

    | | corrected | original | 0.15 |
    |---|---|---|---|
    | prompt and item are compared by | words of any script | ASCII terms of the JSON of blocks | likewise |
    | results | stand behind their calls, always | stay swapped or doubled where nothing else is wrong | stay swapped |
    | the tail pulls in | the other half of each call and result | the results of its calls | nothing |
    | the tail counts | items | items | messages, and holds the newest of a user |
    | before the tail stay | calls that are answered | likewise | calls that are answered behind them |
    | of a summary a model is told | its time and what it is of | likewise | not to trust it, too |
    | an assistant's message carries | nothing beside its words | likewise | a bill of its tokens |
    """

    token_estimator: TokenEstimator
    fresh_tail_count: int = 64
    """How many items, messages and summaries alike, are always shown."""
    fresh_tail_max_tokens: int | None = 4000
    """Fewer are, where they cost more; the newest always is. None = no bound."""
    eviction: Eviction = "chronological"
    """`chronological`: the newest items stay, up to the first that does not fit. `relevance`: those stay that have most
    to do with the prompt; without one as `chronological`."""
    large_results: LargeResults = "reference"
    """What stands for the result of a tool that is too large for a context. `reference`: a line that names it.
    `in_tail`: the line before the fresh tail, all of it there. `whole`: all of it."""
    looked_up_names: int = 0
    """How many names of a prompt, such as MAX_RETRIES, are looked up in the conversation where a context lacks them: it
    begins with what was last said of each, if that fits. 0 = none."""
    clamp: Clamp | None = None
    """Cuts contexts that cost more than their budget as they are sent; None = none."""
    rules: LosslessRules = "corrected"
    timezone: str = "UTC"
    """IANA name: of the times of summaries."""
    max_budget_tokens: int | None = None
    """No budget is larger. None = no bound."""
    default_budget_tokens: int | None = 128_000
    """Where an ask names none, that is 0 or less. None = then nothing but the tail is shown."""
    shows_documents = False

    def __post_init__(self) -> None:
        check_range(self, "fresh_tail_count", "looked_up_names", ge=0)
        check_range(self, "fresh_tail_max_tokens", ge=0, or_null=True)
        check_range(self, "max_budget_tokens", "default_budget_tokens", gt=0, or_null=True)
        check_choice(self, eviction=Eviction, large_results=LargeResults, rules=LosslessRules)
        try:
            ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(f"timezone must be an IANA name such as Europe/Madrid, got {self.timezone!r}") from error

    @property
    def reads_prompts(self) -> bool:
        """Whether a context depends on the prompt of its ask."""
        return self.eviction == "relevance" or self.looked_up_names > 0

    def names(self, prompt: str) -> list[str]:
        """The names of a prompt whose mentions an ask should bring."""
        return names_in(prompt, self.looked_up_names)

    def rendered(self, message: Message) -> str:
        """The text whose tokens a message costs in a context."""
        return storage_shape.rendered(message)

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        """Choose from the context items of one conversation, in order, what fits: one context an ask."""
        if not asks:
            return []
        with collection_paused():
            return self._assembled(items, asks)

    def _assembled(self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest]) -> list[Context]:
        shown = ShownItems(items, self.token_estimator, ZoneInfo(self.timezone), self.rules, self.large_results)
        tail = fresh_tail(shown, self.fresh_tail_count, self.fresh_tail_max_tokens, self.rules)
        if self.large_results == "in_tail":
            shown.refer_before(tail.start)
        choice = _Choice(shown, tail, self.eviction, self.rules)
        note = summaries_note(summaries_in(items))
        contexts: dict[tuple[int, _Kept], Context] = {}
        answered = []
        for ask in asks:
            budget_tokens = self._budget_tokens(ask.budget_tokens)
            kept = choice.kept(room := max(0, budget_tokens - tail.tokens), ask.prompt)
            key = budget_tokens, kept
            if key not in contexts:
                left_out = choice.left_out(kept, room)
                contexts[key] = self._context(shown, tail, kept.places, budget_tokens, note, left_out)
            answered.append(self._with_cue(contexts[key], ask))
        return answered

    def _budget_tokens(self, asked: float) -> int:
        whole = math.floor(asked) if asked > 0 else 0
        budget_tokens = whole or self.default_budget_tokens or 0
        return budget_tokens if self.max_budget_tokens is None else min(budget_tokens, self.max_budget_tokens)

    def _context(
        self,
        shown: ShownItems,
        tail: Tail,
        kept: Sequence[int],
        budget_tokens: int,
        note: str,
        left_out: Mapping[str, LeftOut],
    ) -> Context:
        chosen = [*sorted((*kept, *tail.before)), *tail.order]
        said = [placed for place in chosen for placed in shown[place].messages]
        standing = pruned(said, tail.start, shown, self.rules)
        messages = cleaned(standing, self.rules)
        notes: dict[str, Any] = {}
        if self.clamp is not None:
            clamped = self.clamp.cut([placed.message for placed in messages], budget_tokens, self.token_estimator)
            kept_messages = [messages[at] for at in clamped.kept]
            cut = {*_places(messages)} - {*_places(kept_messages)}
            chosen = [place for place in chosen if place not in cut]
            left_out = {**left_out, **{shown.names[place]: LeftOut("clamped", shown[place].tokens) for place in cut}}
            messages, notes = kept_messages, {"serialized_tokens": clamped.tokens, "is_clamped": clamped.is_cut}
        texts = _texts(standing, {piece for placed in messages for piece in placed.pieces})
        in_tail = {*tail.before, *tail.order}
        return Context(
            items=tuple(_item(shown, place, texts.get(place, ""), place in in_tail) for place in chosen),
            tokens=sum(shown[place].tokens for place in chosen),
            budget_tokens=budget_tokens,
            messages=tuple(placed.message for placed in messages),
            system_note=note,
            evicted=len(shown) - len(chosen),
            left_out=left_out,
            notes=notes,
        )

    def _with_cue(self, context: Context, ask: ContextRequest) -> Context:
        """The context with what was last said of names that it lacks, where that fits."""
        names = self.names(ask.prompt) if ask.mentions else ()
        cue = recall_cue(names, ask.mentions, "\n".join(map(costed_text, context.messages))) if names else None
        if cue is None:
            return context
        message = {"role": "user", "content": cue.text}
        tokens = context.tokens + self.token_estimator.count([cue.text])[0]
        sent = context.notes.get("serialized_tokens", 0) + sum(serialized_tokens([message], self.token_estimator))
        if max(tokens, sent if self.clamp else 0) > context.budget_tokens:
            return context
        item = ContextItem("document", "cue", cue.text, tokens - context.tokens, False, "recalled", cue.message_ids)
        return replace(context, items=(item, *context.items), tokens=tokens, messages=(message, *context.messages))


class _Kept(NamedTuple):
    """What stays of the items before the tail."""

    places: tuple[int, ...]
    is_newest: bool
    """The newest stay; else the best."""


class _Choice:
    """Which items before the tail stay, for one ask after another."""

    def __init__(self, shown: ShownItems, tail: Tail, eviction: Eviction, rules: LosslessRules) -> None:
        pulled_in = {*tail.before, *tail.order}
        self._shown = shown
        self._eviction = eviction
        self._rules: LosslessRules = rules
        self._evictable = [place for place in range(tail.start) if place not in pulled_in]

    def kept(self, budget_tokens: int, prompt: str) -> _Kept:
        newest = _Kept(tuple(newest_that_fit(self._evictable, self._tokens, budget_tokens)), is_newest=True)
        if self._eviction == "chronological" or len(newest.places) == len(self._evictable):
            return newest
        scores = self._index.scores(prompt)
        if scores is None:
            return newest
        return _Kept(tuple(best_that_fit(self._evictable, self._tokens, scores, budget_tokens)), is_newest=False)

    def left_out(self, kept: _Kept, budget_tokens: int) -> dict[str, LeftOut]:
        """Why the others do not stay: of the newest, the first that does not fit ends the walk."""
        stays = set(kept.places)
        others = [place for place in self._evictable if place not in stays]
        room = budget_tokens - sum(map(self._tokens, kept.places))
        if not kept.is_newest:
            return {self._name(place): LeftOut("budget", self._tokens(place), room) for place in others}
        if not others:
            return {}
        *older, first = others
        behind = LeftOut("behind", behind=self._name(first))
        return {self._name(first): LeftOut("budget", self._tokens(first), room)} | {
            self._name(place): behind for place in older
        }

    @cached_property
    def _index(self) -> RelevanceIndex:
        self._shown.make(self._evictable)
        words = self._shown.costed_words if self._rules != "corrected" else self._shown.words
        return RelevanceIndex([words(place) for place in self._evictable], self._rules)

    def _tokens(self, place: int) -> int:
        return self._shown[place].tokens

    def _name(self, place: int) -> str:
        return self._shown.names[place]


def _places(messages: Iterable[PairedMessage]) -> Iterator[int]:
    """The places of the items that messages are of."""
    return (place for placed in messages for place, _ in placed.pieces)


def _texts(standing: Sequence[PairedMessage], shown: set[Piece]) -> dict[int, str]:
    """What each item says, of its messages that are shown."""
    said: dict[int, list[str]] = {}
    for placed in standing:
        piece = placed.pieces[0]
        if piece in shown:
            said.setdefault(piece[0], []).append(readable_text(placed.message))
    return {place: "\n".join(texts) for place, texts in said.items()}


def _item(shown: ShownItems, place: int, text: str, in_tail: bool) -> ContextItem:
    item = shown.items[place]
    return ContextItem(
        kind="summary" if isinstance(item, Summary) else "message",
        item_id=shown.names[place],
        text=text,
        tokens=shown[place].tokens,
        in_tail=in_tail,
    )
