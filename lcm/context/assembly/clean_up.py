"""What was chosen for a context as the messages that a model accepts.

Source: lossless-claw, 0.6.3 and 0.15.3; that pieces of one turn are joined is ours.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from lcm.context.assembly.pairing import PairedMessage, is_blank, paired, says_something
from lcm.context.assembly.runtime_message import blocks_in, call_id_of, calls_of, result_id_of
from lcm.context.assembly.shown_items import ShownItems
from lcm.javascript import trim
from lcm.records.rules import LosslessRules
from lcm.transcript.rendering.blocks import CALL_TYPES


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
    kept = map(_with_blocks, stand)
    return [placed for placed in kept if placed.message["role"] != "assistant" or placed.message["content"]]


def cleaned(kept: Sequence[PairedMessage], rules: LosslessRules) -> list[PairedMessage]:
    """Join the pieces of each turn, leave out what says nothing by the rules of 0.15.3, and pair calls with results."""
    turns = _turns(kept)
    return paired([*_saying_something(turns)] if rules == "0.15" else [*turns], rules)


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
        is_said = says_something(content) if placed.message["role"] == "assistant" else _has_words(content)
        if is_said:
            yield placed._replace(message={**placed.message, "content": content})


def _has_words(content: str | Sequence[Any]) -> bool:
    return bool(trim(content) if isinstance(content, str) else content)


def _with_calls(placed: PairedMessage, call_ids: Collection[str]) -> PairedMessage:
    """With no other calls than these."""
    message = placed.message
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return placed
    blocks = [block for block in message["content"] if not _is_call(block) or call_id_of(block) in call_ids]
    return placed if len(blocks) == len(message["content"]) else placed._replace(message={**message, "content": blocks})


def _is_call(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") in CALL_TYPES and bool(call_id_of(block))


def _with_blocks(placed: PairedMessage) -> PairedMessage:
    message = placed.message
    if message["role"] != "assistant" or not isinstance(message["content"], str) or not message["content"]:
        return placed
    return placed._replace(message={**message, "content": [{"type": "text", "text": message["content"]}]})


def _turns(kept: Iterable[PairedMessage]) -> Iterable[PairedMessage]:
    waiting: PairedMessage | None = None
    for placed in kept:
        if waiting is not None and waiting.turn and waiting.turn == placed.turn:
            content = [*waiting.message["content"], *placed.message["content"]]
            waiting = PairedMessage(
                {**waiting.message, "content": content}, (*waiting.pieces, *placed.pieces), placed.turn
            )
        else:
            if waiting is not None:
                yield waiting
            waiting = placed
    if waiting is not None:
        yield waiting
