"""All finders over one text, once."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType

from lcm.compaction.facts.amounts import dates, numbers
from lcm.compaction.facts.done import changes, commands, errors
from lcm.compaction.facts.named import identifiers, names, paths, urls
from lcm.compaction.facts.reading import ReadMessage, read_text
from lcm.compaction.facts.stances import decisions, preferences, questions, rules
from lcm.compaction.facts.statement import Finder, Kind, ReadText, Statement

FINDERS: Mapping[Kind, Finder] = MappingProxyType(
    {
        "path": paths,
        "change": changes,
        "command": commands,
        "error": errors,
        "identifier": identifiers,
        "url": urls,
        "number": numbers,
        "date": dates,
        "name": names,
        "decision": decisions,
        "rule": rules,
        "preference": preferences,
        "question": questions,
    }
)
_OF_RESULTS: tuple[Kind, ...] = ("error",)
"""What tools brought is no fact of the conversation until somebody says it, but that something went wrong."""
_SEEN_IN_RESULTS: tuple[Kind, ...] = ("path", "url")
_WITHIN: Mapping[Kind, tuple[Kind, ...]] = MappingProxyType(
    {
        "path": ("url",),
        "identifier": ("url", "path", "command", "date"),
        "number": ("url", "path", "command", "date"),
        "date": ("url", "path", "command"),
        "name": ("url", "path", "command", "identifier"),
    }
)
"""A kind -> kinds whose words hold none of it: a number within an address is no number."""


def statements_of(read: ReadMessage) -> list[Statement]:
    """What a message states: places are those in what was said, of errors of tools in what they brought."""
    return [*_found(read.said, tuple(FINDERS)), *_found(read.brought, _OF_RESULTS)]


def seen_in_results(read: ReadMessage) -> list[Statement]:
    """What stands in the results of a message for whoever is shown it, though nobody said it."""
    return list(_found(read.brought, _SEEN_IN_RESULTS))


@lru_cache(maxsize=20_000)
def statements_in(text: str) -> tuple[Statement, ...]:
    """What a text states of which no more is known than its words, as a summary."""
    return tuple(_found(read_text(text), tuple(FINDERS)))


class Spans:
    """Stretches of a text, of which is asked whether one of them holds another: a long message has thousands."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        """
        Args:
            spans: where each begins and ends.
        """
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))
        """Of each the end that lies farthest on, of it and those that begin before it."""

    def hold(self, start: int, end: int) -> bool:
        """Whether one of them begins no later and ends no earlier."""
        place = bisect_right(self._starts, start)
        return place > 0 and self._ends[place - 1] >= end


def _found(read: ReadText, kinds: tuple[Kind, ...]) -> Iterator[Statement]:
    """Each statement once, where it stands last; what stands within other kinds' words, by `_WITHIN`, is left out."""
    found: dict[Kind, list[Statement]] = {}
    for kind in kinds if read.text.strip() else ():
        found[kind] = list(FINDERS[kind](read))
    for kind, statements in found.items():
        spans = Spans((one.start, one.end) for outer in _WITHIN.get(kind, ()) for one in found.get(outer, ()))
        last: dict[tuple[str, str], Statement] = {}
        for one in statements:
            if not spans.hold(one.start, one.end):
                last.pop((one.key, one.value), None)
                last[one.key, one.value] = one
        yield from last.values()
