"""Running totals of a context: after any changes those of a context that is read anew."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.context_totals import ContextTotals
from lcm.records.summary import ContextEntry

ENTRIES = st.lists(st.integers(-6, 6), max_size=24)
"""Tokens of each; of a summary negative, less one."""
CHANGES = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 6), st.booleans()), max_size=6)


def entry(ordinal: int, tokens: int) -> ContextEntry:
    if tokens < 0:
        return ContextEntry(ordinal, "summary", f"s{ordinal}", -tokens - 1, ordinal % 3)
    return ContextEntry(ordinal, "message", f"m{ordinal}", tokens, None)


def told(totals: ContextTotals, entries: Sequence[ContextEntry]) -> dict[str, object]:
    ordinals = range(0, 300, 10)
    return {
        "entries": list(totals),
        "said": list(totals.said),
        "tokens": totals.tokens,
        "raw": totals.raw_weight,
        "depths": totals.depths,
        "unweighed": sorted(one.item_id for one in totals.unweighed),
        "summaries": [list(totals.summaries_before(before)) for before in ordinals],
        "places": [totals.place(one.ordinal) for one in entries],
    }


@given(ENTRIES, CHANGES)
def test_totals_follow_what_is_replaced_and_removed(tokens: list[int], changes: list[tuple[int, int, bool]]) -> None:
    entries = [entry(10 * place, count) for place, count in enumerate(tokens)]
    totals = ContextTotals(entries)
    for number, (start, length, is_removed) in enumerate(changes):
        if start >= len(entries):
            continue
        if is_removed:
            totals.put(start, start + 1)
            del entries[start]
            continue
        stop = min(len(entries), start + length)
        instead = ContextEntry(entries[start].ordinal, "summary", f"new{number}", number, number % 2)
        totals.put(start, stop, instead)
        entries[start:stop] = [instead]
    assert told(totals, entries) == told(ContextTotals(entries), entries)
    assert list(totals.said) == [one for one in entries if one.is_message]
    summaries = [(one.item_id, one.tokens) for one in reversed(entries) if not one.is_message and one.ordinal < 150]
    assert list(totals.summaries_before(150)) == summaries
