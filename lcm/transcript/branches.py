"""What was said and then left: each stretch that does not lead to the end is a conversation of its own."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


class Stretches:
    """Stretches of a file, by the places of its records, that are no longer part of its conversation."""

    def __init__(self, branches: Iterable[range | Sequence[range]]) -> None:
        """Take in what was left.

        Args:
            branches: one stretch each, or several where others were left within it; none overlap.
        """
        numbered = enumerate([branch] if isinstance(branch, range) else branch for branch in branches)
        stretches = ((stretch, number) for number, branch in numbered for stretch in branch)
        self._stretches = sorted(stretches, key=lambda one: one[0].start)
        self._starts = [stretch.start for stretch, _ in self._stretches]
        self._names: dict[int, str] = {}

    def suffix(self, place: int, message_id: str) -> str:
        """What the branch at this place adds to the conversation's id: nothing, or the id of its first message."""
        at = bisect_right(self._starts, place) - 1
        stretch, number = self._stretches[at] if at >= 0 else (range(0), 0)
        return self._names.setdefault(number, f"~{message_id or place}") if place in stretch else ""


def stretches_but(whole: range, earlier: Iterable[Sequence[range]]) -> list[range]:
    """A stretch without what was left before; each branch that begins in it ends in it."""
    within = sorted((r for branch in earlier for r in branch if r.start in whole), key=lambda one: one.start)
    starts, stops = [whole.start, *(one.stop for one in within)], [*(one.start for one in within), whole.stop]
    return [range(first, last) for first, last in zip(starts, stops, strict=True) if first < last]


def is_branch(conversation_id: str, others: Collection[str]) -> bool:
    """Whether a conversation is what was left of one of the others."""
    at = conversation_id.find("~", 1)
    while at > 0 and conversation_id[:at] not in others:
        at = conversation_id.find("~", at + 1)
    return at > 0


def behind_parents(parents: Mapping[str, str | None]) -> list[str]:
    """The nodes of a tree, each behind its parent, children in the order given; last those that lead to no root.

    Args:
        parents: the parent of each node; one that is no node makes its child a root.
    """
    children: dict[str | None, list[str]] = {}
    for node, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(node)
    found: dict[str, None] = {}
    waiting = children.get(None, [])[::-1]
    while waiting:
        node = waiting.pop()
        found[node] = None
        waiting += reversed(children.get(node, []))
    return [*found, *(node for node in parents if node not in found)]


def doubts(parents: Mapping[str, str | None], where: str) -> Iterator[str]:
    """Tell of nodes that are no descendants of a root: they have a parent that is none, or that descends from them."""
    places = {node: place for place, node in enumerate(behind_parents(parents))}
    named = ((places[node], places.get(parent, len(places))) for node, parent in parents.items() if parent is not None)
    if astray := sum(parent >= place for place, parent in named):
        what = "messages follow one that is not there, or themselves, and begin anew"
        yield f"{where}: {astray:,} of {len(parents):,} {what}"


def suffixes(parents: Mapping[str, str | None], last: str | None) -> dict[str, str]:
    """What each node of a tree adds to the conversation's id: nothing on the path from the root to `last`.

    A node that is not on it begins a branch, `~` and its id, if its parent is, or has another child before it; else it
    goes on with its parent's. A parent that is no node, or is its own descendant, is none.

    Args:
        parents: the parent of each node, in the order in which they were said.
        last: the node with which the conversation ends; None or unknown = the node that was said last.
    """
    found: dict[str, str] = {}
    node = last if last in parents else next(reversed(list(parents)), None)
    while node is not None and node in parents and node not in found:
        found[node] = ""
        node = parents[node]
    continued: set[str | None] = set()
    for node, parent in parents.items():
        if node not in found:
            goes_on = found.get(parent or "") and parent not in continued
            found[node] = found[parent or ""] if goes_on else f"~{node}"
            continued.add(parent)
    return found
