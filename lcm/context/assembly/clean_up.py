"""What was chosen for a context as the messages that a model accepts.

Source: lossless-claw 0.6.3; that pieces of one turn are joined is ours.
"""

from collections.abc import Collection, Iterable, Sequence

from lcm.context.assembly.pairing import PairedMessage, paired
from lcm.context.assembly.runtime_message import call_id_of, result_id_of
from lcm.records.rules import Rules
from lcm.transcript.rendering.blocks import CALL_TYPES


def pruned(chosen: Sequence[PairedMessage], tail: Collection[int]) -> list[PairedMessage]:
    """Leave out what cannot stand: calls of items outside the tail whose results were not chosen, and the assistant's
    messages that are empty. Words of an assistant become a block."""
    results = {result_id_of(placed.message) for placed in chosen}
    kept = (placed if placed.pieces[0][0] in tail else _with_answered_calls(placed, results) for placed in chosen)
    blocked = (_with_blocks(placed) for placed in kept)
    return [placed for placed in blocked if placed.message["role"] != "assistant" or placed.message["content"]]


def cleaned(kept: Sequence[PairedMessage], rules: Rules) -> list[PairedMessage]:
    """Join the pieces of each turn, and pair its calls with their results."""
    return paired(list(_turns(kept)), rules)


def _with_answered_calls(placed: PairedMessage, results: Collection[str]) -> PairedMessage:
    message = placed.message
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return placed
    blocks = [block for block in message["content"] if not _is_unanswered(block, results)]
    return placed if len(blocks) == len(message["content"]) else placed._replace(message={**message, "content": blocks})


def _is_unanswered(block: object, results: Collection[str]) -> bool:
    if not isinstance(block, dict) or block.get("type") not in CALL_TYPES:
        return False
    call_id = call_id_of(block)
    return bool(call_id) and call_id not in results


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
