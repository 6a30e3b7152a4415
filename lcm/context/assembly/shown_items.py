"""The items of a context as a model would be shown them, every result of a tool behind the call that it answers.

Source: the transcript repair and the stubs of lossless-claw, 0.6.3 and 0.15.3; the corrected rules, and that pieces of
one turn are joined, are ours.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from lcm.javascript import trim
from lcm.protocols.models import TakesRecorded, TokenEstimator
from lcm.records.conversation import LargeFile, Message
from lcm.records.rules import LosslessRules
from lcm.records.summary import Summary
from lcm.store.summaries import item_ids
from lcm.transcript.large_files import shortened_result
from lcm.transcript.message_tokens import Reply, replies, without_images
from lcm.transcript.rendering import (
    AGENT_CALL_TYPES,
    RuntimeMessage,
    blocks_in,
    call_id_of,
    calls_of,
    costed_text,
    readable_text,
    result_id_of,
    runtime_messages,
    summary_text,
    turn_of,
    with_usage,
)

REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")

NO_RESULT = "No result of this call was recorded; this error stands in its place."
"""What an answer says that was made up."""

Piece = tuple[int, int]
"""The place of an item, and that of the message within it."""
LargeResults = Literal["reference", "in_tail", "whole"]
"""How a context shows them: by a reference, whole in the fresh tail alone, or whole."""
AHEAD = 64
"""How many items are made at once, so that an estimator gets batches."""


class PairedMessage(NamedTuple):
    """A message, and the pieces of items that it was made of; none where it was made up."""

    message: RuntimeMessage
    pieces: tuple[Piece, ...] = ()
    turn: str = ""


def paired(messages: Sequence[PairedMessage], rules: LosslessRules) -> list[PairedMessage]:
    """Pair calls with results.

    A result without a call is dropped. A call without a result is answered by an error; calls of an assistant that
    stopped by an error, or was stopped, are left alone.

    `corrected`: a result belongs to the nearest message before it that calls its id and has no answer yet; the paired
    messages are given back always. `original`: a result belongs to the last assistant's message before it, and an id is
    answered once; the messages are given back as they were where nothing was dropped, made up or moved past another
    message, even if results stand in another order than their calls or twice. `0.15`: an id is called once, by its
    first call, and answered by the first result behind that call which was not made up; an assistant that stopped by an
    error, or was stopped, loses its calls; the messages are given back as they were where nothing but the order of
    results beside each other would change.
    """
    if rules == "0.15":
        return _called_once(messages)
    return _strict(messages) if rules == "corrected" else _lenient(messages)


def _strict(messages: Sequence[PairedMessage]) -> list[PairedMessage]:
    answers: dict[tuple[int, str], PairedMessage] = {}
    open_calls: dict[str, list[int]] = {}
    for place, placed in enumerate(messages):
        if _is_result(placed):
            waiting = open_calls.get(result_id_of(placed.message))
            if waiting:
                answers[waiting.pop(), result_id_of(placed.message)] = placed
        elif not _is_broken_off(placed):
            for call_id in dict(calls_of(placed.message)):
                open_calls.setdefault(call_id, []).append(place)
    whole: list[PairedMessage] = []
    for place, placed in enumerate(messages):
        if _is_result(placed):
            continue
        if _is_broken_off(placed):
            whole.append(placed)
            continue
        whole.append(_reasoning_first(placed))
        called = calls_of(placed.message)
        names = dict(reversed(called))  # of two calls under one id the first gives the name
        whole += [answers.get((place, call_id)) or _made_up(call_id, names[call_id]) for call_id in dict(called)]
    return whole


def _called_once(messages: Sequence[PairedMessage]) -> list[PairedMessage]:
    standing = _without_repeated_calls(messages)
    results: dict[str, list[int]] = {}
    for place, placed in standing.items():
        if _is_result(placed):
            results.setdefault(result_id_of(placed.message), []).append(place)
    whole: list[PairedMessage] = []
    for place, placed in standing.items():
        if _is_result(placed):
            continue
        whole.append(placed)
        for call_id, name in () if _is_broken_off(placed) else calls_of(placed.message):
            behind = [standing[later] for later in results.get(call_id, ()) if later > place]
            found = next((one for one in behind if not _is_made_up(one)), behind[0] if behind else None)
            whole.append(found or _made_up(call_id, name))
    return list(messages) if _has_only_swapped_results(messages, whole) else whole


def _without_repeated_calls(messages: Sequence[PairedMessage]) -> dict[int, PairedMessage]:
    """By their places the messages that stay: each id is called once, by nobody who was broken off."""
    called: set[str] = set()
    standing: dict[int, PairedMessage] = {}
    for place, placed in enumerate(map(_reasoning_first, messages)):
        kept: list[Any] = []
        blocks = blocks_in(placed.message) if placed.message["role"] == "assistant" else ()
        for block in blocks:
            call_id = _called_by(block)
            if not call_id or not (_is_broken_off(placed) or call_id in called):
                kept.append(block)
                called.add(call_id)
        if len(kept) == len(blocks):
            standing[place] = placed
        elif says_something(kept):
            standing[place] = placed._replace(message={**placed.message, "content": kept})
    return standing


def _called_by(block: object) -> str:
    """The id that a block of an assistant calls; empty where it is no call, or one without an id."""
    return call_id_of(block) if isinstance(block, dict) and block.get("type") in AGENT_CALL_TYPES else ""


def says_something(blocks: Sequence[Any]) -> bool:
    """Whether there is more among the blocks of an assistant than reasoning and blank text."""
    return any(
        not isinstance(block, dict) or (block.get("type") not in REASONING_TYPES and not is_blank(block))
        for block in blocks
    )


def is_blank(block: Any) -> bool:
    """Whether it is a block of text that says nothing."""
    is_text = isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    return is_text and not trim(block["text"])


def _has_only_swapped_results(before: Sequence[PairedMessage], after: Sequence[PairedMessage]) -> bool:
    """Whether nothing but results beside each other has another place, and nobody speaks behind the first call."""
    if set(map(id, before)) != set(map(id, after)):
        return False
    first = next((place for place, placed in enumerate(before) if calls_of(placed.message)), len(before))
    return all(
        (_is_result(one) and _is_result(other)) or (one is other and (place < first or bool(calls_of(one.message))))
        for place, (one, other) in enumerate(zip(before, after, strict=True))
    )


def _is_made_up(placed: PairedMessage) -> bool:
    blocks = blocks_in(placed.message) if placed.message.get("isError") is True else ()
    return any(isinstance(block, dict) and block.get("text") == NO_RESULT for block in blocks)


def _lenient(messages: Sequence[PairedMessage]) -> list[PairedMessage]:
    whole: list[PairedMessage] = []
    answered: set[str] = set()
    is_changed = False
    spoken = [place for place, placed in enumerate(messages) if placed.message["role"] == "assistant"]
    for start, end in pairwise([0, *spoken, len(messages)]):  # an assistant's message, and all up to the next
        calls: list[tuple[str, str]] = []
        results: dict[str, PairedMessage] = {}
        others: list[PairedMessage] = []
        for placed in messages[start:end]:
            if placed.message["role"] == "assistant" and not _is_broken_off(placed):
                calls = calls_of(placed.message)
                whole.append(_reasoning_first(placed))
                is_changed = is_changed or whole[-1] is not placed
            elif not _is_result(placed):
                others.append(placed)
            elif (call_id := result_id_of(placed.message)) in dict(calls) and call_id not in answered:
                results.setdefault(call_id, placed)
            else:
                is_changed = True
        for call_id, name in calls:
            is_changed = is_changed or call_id in answered or call_id not in results
            if call_id not in answered:
                answered.add(call_id)
                whole.append(results.get(call_id) or _made_up(call_id, name))
        is_changed = is_changed or bool(results and others)
        whole += others
    return whole if is_changed else list(messages)


def _is_result(placed: PairedMessage) -> bool:
    return bool(placed.message["role"] == "toolResult")


def _is_broken_off(placed: PairedMessage) -> bool:
    return placed.message.get("stopReason") in ("error", "aborted")


def _reasoning_first(placed: PairedMessage) -> PairedMessage:
    """Put reasoning before the one function call of a message that holds nothing else; OpenAI refuses another order."""
    blocks = blocks_in(placed.message) if placed.message["role"] == "assistant" else ()
    kinds = [block.get("type") if isinstance(block, dict) else None for block in blocks]
    is_call = [kind in AGENT_CALL_TYPES for kind in kinds]
    is_reasoning = [kind in ("reasoning", "thinking") for kind in kinds]
    functions = sum(kind in ("functionCall", "function_call") for kind in kinds)
    if functions != 1 or not all(map(max, is_call, is_reasoning)) or not any(is_reasoning[is_call.index(True) :]):
        return placed
    order = sorted(range(len(blocks)), key=lambda at: is_call[at])
    return placed._replace(message={**placed.message, "content": [blocks[at] for at in order]})


def _made_up(call_id: str, name: str) -> PairedMessage:
    text = [{"type": "text", "text": NO_RESULT}]
    answer = {"role": "toolResult", "toolCallId": call_id, "toolName": name or "unknown", "content": text}
    return PairedMessage({**answer, "isError": True})


def large_results(message: Message) -> dict[str, LargeFile]:
    """The large results that a message holds, by the call that each answers."""
    placed = ((message.parts[file.ordinal], file) for file in message.files)
    return {part.tool_call_id: file for part, file in placed if part.tool_call_id}


def referred(message: RuntimeMessage, results: Mapping[str, LargeFile]) -> RuntimeMessage:
    """The message with a reference in the place of a large result; any other as it is."""
    file = results.get(result_id_of(message))
    if file is None:
        return message
    words = shortened_result(file, message["toolName"])
    return {**message, "content": [{"type": "text", "text": words}] if isinstance(message["content"], list) else words}


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
            self.make(range(max(0, place + 1 - AHEAD), place + 1))  # contexts are filled from the newest item back
        return self._shown[place]

    def make(self, places: Sequence[int]) -> None:
        """Make what is still to be made of these items, in one go."""
        alone: tuple[int, ...] = ()  # the pieces of one answer are counted together
        pieces = (self._replies[place].places if place in self._replies else alone for place in places)
        self._show(sorted({*places, *chain.from_iterable(pieces)} - self._shown.keys()))

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
        """What the item says: the text of a summary, and of a message what can be read, or by the originals' rules
        its blocks as JSON."""
        item, shown = self.items[place], self[place]
        if isinstance(item, Summary):
            return item.content
        if self._rules != "corrected":
            return shown.costed
        return "\n".join(readable_text(placed.message) for placed in shown.messages)

    def _show(self, places: Sequence[int]) -> None:
        messages = [self._placed(place) for place in places]
        costed = [self._costed(place, said) for place, said in zip(places, messages, strict=True)]
        counts = self._counted(places, costed)
        for place, said, text, tokens in zip(places, messages, costed, counts, strict=True):
            if self._rules == "0.15":
                said = tuple(placed._replace(message=with_usage(placed.message, tokens)) for placed in said)
            self._shown[place] = ShownItem(said, text, tokens)

    def _costed(self, place: int, said: Sequence[PairedMessage]) -> str:
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
                texts[at] = "\n".join(map(costed_text, runtime_messages(bare))) if images[at] else texts[at]
        counted = zip(places, self._estimator.count(texts), images, strict=True)
        counts = {place: count + (price or 0) * some for place, count, some in counted}
        if isinstance(self._estimator, TakesRecorded):
            for reply in {self._replies[place] for place in places if place in self._replies}:
                shares = self._estimator.shares(reply.tokens, [counts[place] for place in reply.places])
                counts |= zip(reply.places, shares, strict=True)
        return list(counts.values())

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


def _replies(items: Sequence[Message | Summary]) -> dict[int, Reply]:
    """By the places of the messages that each was recorded as."""
    places = [place for place, item in enumerate(items) if isinstance(item, Message)]
    found = replies([item for item in items if isinstance(item, Message)])
    placed = [reply._replace(places=tuple(places[at] for at in reply.places)) for reply in found]
    return {place: reply for reply in placed for place in reply.places}


def pruned(chosen: Sequence[PairedMessage], tail: int, shown: ShownItems, rules: LosslessRules) -> list[PairedMessage]:
    """Leave out what cannot stand: calls whose results were not chosen, and the assistant's messages that are empty.
    Words of an assistant become a block.

    Calls of the tail, which begins at the place `tail`, stay. By the rules of 0.15.3 a result must stand behind its
    call, and calls of the tail stay only where no item of the conversation answers them.
    """
    if rules == "0.15":
        stand = _with_calls_answered_behind(chosen, tail, shown)
    else:
        results = {result_id_of(placed.message) for placed in chosen}
        stand = [placed if placed.pieces[0][0] >= tail else _with_calls(placed, results) for placed in chosen]
    kept = []
    for placed in stand:
        content, is_answer = placed.message["content"], placed.message["role"] == "assistant"
        if is_answer and content and isinstance(content, str):
            placed = placed._replace(message={**placed.message, "content": [{"type": "text", "text": content}]})
        if content or not is_answer:
            kept.append(placed)
    return kept


def cleaned(kept: Sequence[PairedMessage], rules: LosslessRules) -> list[PairedMessage]:
    """Join the pieces of each turn, leave out what says nothing by the rules of 0.15.3, and pair calls with results."""
    turns = _turns(kept)
    return paired([*_saying_something(turns)] if rules == "0.15" else turns, rules)


def texts(standing: Iterable[PairedMessage], kept: Iterable[PairedMessage]) -> dict[int, str]:
    """By its place what each item says, of its messages that were kept of those that stand."""
    pieces = {piece for placed in kept for piece in placed.pieces}
    said: dict[int, list[str]] = {}
    for placed in standing:
        if placed.pieces[0] in pieces:
            said.setdefault(placed.pieces[0][0], []).append(readable_text(placed.message))
    return {place: "\n".join(lines) for place, lines in said.items()}


def _with_calls_answered_behind(chosen: Sequence[PairedMessage], tail: int, shown: ShownItems) -> list[PairedMessage]:
    last = {result_id_of(placed.message): at for at, placed in enumerate(chosen)}
    called = [{call_id for call_id, _ in calls_of(placed.message)} for placed in chosen]
    answered = [{one for one in ids if last.get(one, -1) > at} for at, ids in enumerate(called)]
    in_tail = [placed.pieces[0][0] >= tail for placed in chosen]
    asked = {one for at, ids in enumerate(called) if in_tail[at] for one in ids - answered[at]}
    waiting = asked - {one for place in shown.naming_calls(asked, len(shown)) for one in shown[place].results}
    return [_with_calls(placed, answered[at] | (waiting if in_tail[at] else set())) for at, placed in enumerate(chosen)]


def _saying_something(messages: Iterable[PairedMessage]) -> Iterator[PairedMessage]:
    for placed in messages:
        content = placed.message["content"]
        if placed.message["role"] == "assistant":
            content = [block for block in blocks_in(placed.message) if not is_blank(block)]
            is_said = says_something(content)
        else:
            is_said = bool(trim(content) if isinstance(content, str) else content)
        if is_said:
            yield placed._replace(message={**placed.message, "content": content})


def _with_calls(placed: PairedMessage, call_ids: Collection[str]) -> PairedMessage:
    """With no other calls than these."""
    message = placed.message
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return placed
    blocks = [block for block in message["content"] if (called := _called_by(block)) in call_ids or not called]
    return placed if len(blocks) == len(message["content"]) else placed._replace(message={**message, "content": blocks})


def _turns(kept: Iterable[PairedMessage]) -> list[PairedMessage]:
    whole: list[PairedMessage] = []
    for placed in kept:
        if whole and placed.turn and whole[-1].turn == placed.turn:
            before = whole.pop()
            content = [*before.message["content"], *placed.message["content"]]
            placed = PairedMessage(
                {**before.message, "content": content}, (*before.pieces, *placed.pieces), placed.turn
            )
        whole.append(placed)
    return whole
