"""Tool results: what a tool gave back, asked for by what it was called with."""

import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eval.questions.making.kind import Draft
from eval.questions.making.talk import Talk, units
from lcm.checks import check_range
from lcm.records.conversation import Part
from lcm.retrieval.ranking.evidence.text_facts import content_words


@dataclass(frozen=True, slots=True)
class ToolResult:
    """Asks with the name of a tool and the words of its arguments.

    Evidence: the results of that call and of equal ones, and byte-equal copies of them.
    """

    n: int = 100
    least_words: int = 2
    """Content words of the arguments."""
    most_words: int = 30
    """Words of the arguments that are asked with, the first."""

    def __post_init__(self) -> None:
        check_range(self, "n", ge=0)
        check_range(self, "least_words", "most_words", ge=1)

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        calls: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        for place, part, result in _answered_calls(talk):
            calls[part.tool_name or "", part.tool_input or ""].append((place, result))
        taken: set[int] = set()
        for (name, arguments), answered in calls.items():
            place = answered[0][0]
            text = self._asked(name, arguments)
            if text is None or place in taken:
                continue
            taken.add(place)
            yield Draft(place, text, talk.with_copies(result for _, result in answered), talk.end)

    def _asked(self, name: str, arguments: str) -> str | None:
        try:
            said = " ".join(_leaves(json.loads(arguments)))
        except (ValueError, RecursionError):
            said = arguments
        words = units(said)[: self.most_words]
        if len({word for unit in words for word in unit.words}) < self.least_words:
            return None
        return f"{name.replace('_', ' ')} {' '.join(said[: words[-1].end].split())}"


def _answered_calls(talk: Talk) -> Iterator[tuple[int, Part, int]]:
    """Where a tool was called, the call, and where its result stands: the first message after it that has its id."""
    named: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, turn in enumerate(talk.turns):
        for call_id in dict.fromkeys(part.tool_call_id for part in turn.message.parts if part.tool_call_id):
            named[turn.conversation_id, call_id].append(place)
    for place, turn in enumerate(talk.turns):
        for part in turn.message.parts:
            if part.part_type == "tool" and part.tool_call_id and part.tool_input is not None:
                places = named[turn.conversation_id, part.tool_call_id]
                after = bisect_right(places, place)
                if after < len(places) and _is_result(talk, places[after], part.tool_call_id):
                    yield place, part, places[after]


def _is_result(talk: Talk, place: int, call_id: str) -> bool:
    """Whether a turn that has the id of a call holds its result, and not another call under the same id."""
    turn = talk.turns[place]
    is_call = any(part.tool_call_id == call_id and part.tool_input is not None for part in turn.message.parts)
    return not is_call and bool(content_words(turn.text))


def _leaves(node: Any) -> Iterator[str]:
    """The values of decoded arguments, without their keys."""
    match node:
        case dict():
            for child in node.values():
                yield from _leaves(child)
        case list():
            for child in node:
                yield from _leaves(child)
        case str() | int() | float() if not isinstance(node, bool):
            yield str(node)
