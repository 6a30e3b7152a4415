"""Hot spots: messages that what was said later comes back to, which compaction leaves alone as well.

Source: to preserve hot spots, by where access concentrates, is named as a refinement in libravdb memory's document of
compaction, without a formula; that to state a fact again is an access is ours.
"""

from dataclasses import dataclass

from lcm.compaction.context_totals import totals_of
from lcm.protocols.compaction import ContextWindow
from lcm.records.summary import ContextEntry


@dataclass(frozen=True, slots=True)
class HotSpots:
    """The hottest messages before the fresh tail, as many as fit into `tokens`.

    The heat of a message is the number of later messages that state one of its facts again. It is hot from `heat` on. A
    call of a tool and its results are as hot as the hottest of them, and stay or go together; a result whose call is
    folded already goes. Of equally hot ones the newer comes first; what no longer fits is passed over.
    """

    tokens: int = 0
    """0 = none is kept, and nothing is read."""
    heat: int = 3

    def kept(self, window: ContextWindow, tail: int) -> dict[str, int]:
        """The ids of the messages that stay, and what each weighs.

        Args:
            window: the context.
            tail: where the fresh tail begins.
        """
        if not self.tokens:
            return {}
        totals, heat = totals_of(window.entries), window.heat()
        together: dict[str, list[ContextEntry]] = {}
        for entry in totals.said:
            together.setdefault(heat[entry.item_id].caller, []).append(entry)
        hot = [
            (max(heat[entry.item_id].heat for entry in entries), entries)
            for caller, entries in together.items()
            if any(entry.item_id == caller for entry in entries)
        ]
        end = totals[tail].ordinal if tail < len(totals) else None
        kept: dict[str, int] = {}
        for hottest, entries in sorted(hot, key=lambda one: (-one[0], -one[1][0].ordinal)):
            if hottest < self.heat:
                break
            weights = {one.item_id: totals.weight(one) for one in entries if end is None or one.ordinal < end}
            if sum(kept.values()) + sum(weights.values()) <= self.tokens:
                kept |= weights
        return kept
