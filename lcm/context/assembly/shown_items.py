"""The items of a context as they would be shown, each made when it is first asked for."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple
from zoneinfo import ZoneInfo

from lcm.context.assembly.large_results import LargeResults, large_results, referred
from lcm.context.assembly.pairing import PairedMessage
from lcm.context.assembly.runtime_message import (
    RuntimeMessage,
    calls_of,
    costed_text,
    readable_text,
    result_id_of,
    runtime_messages,
    with_usage,
)
from lcm.javascript import trim
from lcm.protocols.models import TakesRecorded, TokenEstimator
from lcm.records.conversation import LargeFile, Message
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.context import item_ids
from lcm.transcript.images import without_images
from lcm.transcript.rendering.agent_form import turn_of
from lcm.transcript.rendering.summary_form import summary_text
from lcm.transcript.usage import Reply, replies

_AHEAD = 64
"""How many items are made at once, so that an estimator gets batches."""


class ShownItem(NamedTuple):
    """An item as it would be shown, before anything is left out or repaired."""

    messages: tuple[PairedMessage, ...]
    costed: str
    """What its tokens are counted from."""
    tokens: int

    @property
    def calls(self) -> list[str]:
        return [call_id for placed in self.messages for call_id, _ in calls_of(placed.message)]

    @property
    def results(self) -> list[str]:
        return [call_id for placed in self.messages if (call_id := result_id_of(placed.message))]


class ShownItems:
    """All items of one context, by their place."""

    def __init__(
        self,
        items: Sequence[Message | Summary],
        estimator: TokenEstimator,
        zone: ZoneInfo,
        rules: LosslessRules = "corrected",
        large_results: LargeResults = "reference",
    ) -> None:
        self.items = items
        self._rules: LosslessRules = rules
        self._are_large_whole = large_results != "reference"
        self._references_before = 0
        self.names = item_ids(items)
        """Their ids."""
        self._estimator = estimator
        self._zone = zone
        self._shown: dict[int, ShownItem] = {}
        self._replies = _replies(items) if isinstance(estimator, TakesRecorded) else {}
        """Of each place the answer that it is a piece of, where its length was recorded."""

    def __len__(self) -> int:
        return len(self.items)

    def refer_before(self, stop: int) -> None:
        """Show references instead of large results before a place."""
        self._references_before = stop
        self._shown = {place: one for place, one in self._shown.items() if place >= stop}

    def __getitem__(self, place: int) -> ShownItem:
        if place not in self._shown:
            self.make(range(max(0, place + 1 - _AHEAD), place + 1))  # contexts are filled from the newest item back
        return self._shown[place]

    def make(self, places: Sequence[int]) -> None:
        """Make what is still to be made of these items, in one go."""
        whole = {one for place in places for one in (place, *self._pieces(place))}
        self._show(sorted(whole - self._shown.keys()))

    def naming_calls(self, call_ids: Collection[str], stop: int) -> Iterator[int]:
        """The places before `stop` of the messages that call or answer one of these ids, the last first."""
        if not call_ids:
            return
        for place in range(stop - 1, -1, -1):
            item = self.items[place]
            if not isinstance(item, Message):
                continue
            for part in item.parts:
                if part.tool_call_id in call_ids:
                    yield place
                    break

    def words(self, place: int) -> str:
        """What the item says: the text of a summary, the readable text of a message."""
        item = self.items[place]
        if isinstance(item, Summary):
            return item.content
        return "\n".join(readable_text(placed.message) for placed in self[place].messages)

    def costed_words(self, place: int) -> str:
        """What the item says, a message with its blocks as JSON."""
        item = self.items[place]
        return item.content if isinstance(item, Summary) else self[place].costed

    def _show(self, places: Sequence[int]) -> None:
        messages = [self._placed(place) for place in places]
        costed = [self._costed(place, said) for place, said in zip(places, messages, strict=True)]
        counts = self._counted(places, costed)
        for place, said, text, tokens in zip(places, messages, costed, counts, strict=True):
            if self._rules == "0.15":
                said = tuple(placed._replace(message=with_usage(placed.message, tokens)) for placed in said)
            self._shown[place] = ShownItem(said, text, tokens)

    def _costed(self, place: int, said: Sequence[PairedMessage]) -> str:
        if len(said) == 1 and place >= self._references_before:  # most items, sooner
            return costed_text(said[0].message)
        results = self._large_results(place) if place < self._references_before else {}
        return "\n".join(
            (readable_text if result_id_of(placed.message) in results else costed_text)(placed.message)
            for placed in said
        )

    def _large_results(self, place: int) -> Mapping[str, LargeFile]:
        item = self.items[place]
        return large_results(item) if self._are_large_whole and isinstance(item, Message) else {}

    def _counted(self, places: Sequence[int], costed: Sequence[str]) -> list[int]:
        texts, price = list(costed), self._estimator.image_tokens
        images = [0] * len(texts)
        for at, place in enumerate(places):
            item = self.items[place]
            if price is not None and isinstance(item, Message):
                bare, images[at] = without_images(item)
                texts[at] = _costed(runtime_messages(bare)) if images[at] else texts[at]
        counted = zip(places, self._estimator.count(texts), images, strict=True)
        counts = {place: count + (price or 0) * some for place, count, some in counted}
        if isinstance(self._estimator, TakesRecorded):
            for reply in {self._replies[place] for place in places if place in self._replies}:
                shares = self._estimator.shares(reply.tokens, [counts[place] for place in reply.places])
                counts |= zip(reply.places, shares, strict=True)
        return list(counts.values())

    def _pieces(self, place: int) -> tuple[int, ...]:
        """The places of the answer that a message is a piece of, which are counted together."""
        return self._replies[place].places if place in self._replies else ()

    def _placed(self, place: int) -> tuple[PairedMessage, ...]:
        item = self.items[place]
        if isinstance(item, Summary):
            words = summary_text(item, self._zone, is_untrusted=self._rules == "0.15")
            return (PairedMessage({"role": "user", "content": words}, ((place, 0),)),)
        if self._rules == "0.15" and not item.parts and item.role == "assistant" and not trim(item.content):
            return ()
        results = self._large_results(place) if self._are_large_whole else {}
        said = runtime_messages(
            replace(item, files=tuple(file for file in item.files if file not in results.values())) if results else item
        )
        if place < self._references_before:
            said = [referred(message, results) for message in said]
        turn = turn_of(item)
        return tuple(PairedMessage(message, ((place, number),), turn) for number, message in enumerate(said))


def _costed(messages: Sequence[RuntimeMessage]) -> str:
    return "\n".join(map(costed_text, messages))


def _replies(items: Sequence[Message | Summary]) -> dict[int, Reply]:
    """By the places of the messages that each was recorded as."""
    places = [place for place, item in enumerate(items) if isinstance(item, Message)]
    found = replies([item for item in items if isinstance(item, Message)])
    placed = [reply._replace(places=tuple(places[at] for at in reply.places)) for reply in found]
    return {place: reply for reply in placed for place in reply.places}
