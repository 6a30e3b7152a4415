"""From a summary back to the messages beneath it: Expand*."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Unopened = Literal["left_out", "returned"]


class Child(NamedTuple):
    """What a summary was made of."""

    item_id: str
    is_summary: bool


class RawMessages(NamedTuple):
    """The messages beneath a summary, depth first."""

    item_ids: tuple[str, ...]
    is_truncated: bool
    """A summary lay deeper than was looked."""


@dataclass(frozen=True, slots=True)
class LineageExpansion:
    """Expand*(x) = {x} for a message, and the union over its children for a summary.

    Nothing is opened beneath itself, so that it ends even where lineage is no DAG.

    Source: libravdb memory 1.3.17, continuity.md, section 7.5. 1.4.4 looks three levels deep, returns the summaries
    that it does not open, and each message as often as it is reached.
    """

    max_depth: int | None = None
    """Levels that are looked at; None = all."""
    unopened: Unopened = "left_out"
    """What becomes of the summaries below them."""
    has_repeats: bool = False

    def __post_init__(self) -> None:
        if self.max_depth is not None and not self.max_depth >= 1:
            raise ValueError(f"max_depth must be >= 1, or null for all, got {self.max_depth}")
        if self.unopened not in Unopened.__args__:  # type: ignore[attr-defined]
            raise ValueError(f"unopened must be left_out or returned, got {self.unopened!r}")

    def expand(self, summary_id: str, children: Callable[[str], Sequence[Child]]) -> RawMessages:
        """Follow the edges down.

        Args:
            summary_id: what is expanded; a summary without children expands to nothing.
            children: of a summary, in order.
        """
        found: list[str] = []
        is_truncated = False
        waiting = [(child, self.max_depth, frozenset({summary_id})) for child in reversed(children(summary_id))]
        while waiting:
            child, depth, above = waiting.pop()
            if not child.is_summary:
                found.append(child.item_id)
            elif depth == 1:
                is_truncated = True
                found += [child.item_id] if self.unopened == "returned" else []
            elif child.item_id not in above:
                below = None if depth is None else depth - 1
                beneath = above | {child.item_id}
                waiting += [(one, below, beneath) for one in reversed(children(child.item_id))]
        ids = found if self.has_repeats else list(dict.fromkeys(found))
        return RawMessages(tuple(ids), is_truncated)
