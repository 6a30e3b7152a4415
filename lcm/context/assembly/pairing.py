"""Every result of a tool behind the call that it answers, and every call answered.

Source: the transcript repair of lossless-claw, 0.6.3 and 0.15.3; the corrected rules are ours.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lcm.context.assembly.runtime_message import RuntimeMessage, blocks_in, call_id_of, calls_of, result_id_of
from lcm.javascript import trim
from lcm.records.rules import LosslessRules
from lcm.transcript.rendering.blocks import CALL_TYPES

REASONING_TYPES = ("thinking", "redacted_thinking", "reasoning")

NO_RESULT = "No result of this call was recorded; this error stands in its place."
"""What an answer says that was made up."""

Piece = tuple[int, int]
"""The place of an item, and that of the message within it."""


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
    for place, recorded in enumerate(messages):
        placed = _reasoning_first(recorded)
        blocks = blocks_in(placed.message) if placed.message["role"] == "assistant" else ()
        kept: list[Any] = []
        for block in blocks:
            call_id = call_id_of(block) if isinstance(block, dict) and block.get("type") in CALL_TYPES else ""
            if not call_id or not (_is_broken_off(placed) or call_id in called):
                kept.append(block)
                called |= {call_id} if call_id else set()
        if len(kept) == len(blocks):
            standing[place] = placed
        elif says_something(kept):
            standing[place] = placed._replace(message={**placed.message, "content": kept})
    return standing


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
    place = 0
    while place < len(messages):
        placed = messages[place]
        place += 1
        if _is_result(placed):
            is_changed = True
            continue
        if placed.message["role"] != "assistant" or _is_broken_off(placed):
            whole.append(placed)
            continue
        ordered = _reasoning_first(placed)
        is_changed = is_changed or ordered is not placed
        whole.append(ordered)
        calls = calls_of(placed.message)
        if not calls:
            continue
        end = _next_assistant(messages, place)
        span = _Span.of(messages[place:end], {call_id for call_id, _ in calls}, answered)
        place = end
        is_changed = is_changed or span.has_dropped or bool(span.results and span.others)
        for call_id, name in calls:
            if call_id not in span.results:
                is_changed = True
            if call_id in answered:
                is_changed = True
                continue
            answered.add(call_id)
            whole.append(span.results.get(call_id) or _made_up(call_id, name))
        whole += span.others
    return whole if is_changed else list(messages)


class _Span(NamedTuple):
    """What stands between an assistant's message and the next."""

    results: dict[str, PairedMessage]
    others: list[PairedMessage]
    has_dropped: bool

    @classmethod
    def of(cls, messages: Iterable[PairedMessage], called: set[str], answered: set[str]) -> "_Span":
        results: dict[str, PairedMessage] = {}
        others: list[PairedMessage] = []
        has_dropped = False
        for placed in messages:
            if not _is_result(placed):
                others.append(placed)
            elif (call_id := result_id_of(placed.message)) in called and call_id not in answered:
                results.setdefault(call_id, placed)
            else:
                has_dropped = True
        return cls(results, others, has_dropped)


def _next_assistant(messages: Sequence[PairedMessage], first: int) -> int:
    later = range(first, len(messages))
    return next((place for place in later if messages[place].message["role"] == "assistant"), len(messages))


def _is_result(placed: PairedMessage) -> bool:
    return bool(placed.message["role"] == "toolResult")


def _is_broken_off(placed: PairedMessage) -> bool:
    return placed.message.get("stopReason") in ("error", "aborted")


def _reasoning_first(placed: PairedMessage) -> PairedMessage:
    """Put reasoning before the one function call of a message that holds nothing else; OpenAI refuses another order."""
    blocks = blocks_in(placed.message) if placed.message["role"] == "assistant" else ()
    kinds = [block.get("type") if isinstance(block, dict) else None for block in blocks]
    is_call = [kind in CALL_TYPES for kind in kinds]
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
