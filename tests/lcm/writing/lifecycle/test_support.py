"""Laws of confirmations and contradictions; the vectors of the original are in tests/golden."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.lifecycle.support import (
    MAX_SLICES,
    Support,
    normalized_context,
    observe,
    read_support,
    support_info,
)

NOW = 1_775_000_000_000
EVENTS = st.lists(
    st.tuples(st.sampled_from(["work", " WORK", "上班", "", None, *"abcdefghij"]), st.booleans()), max_size=30
)


def observed(events: list[tuple[str | None, bool]], known: Support | None = None) -> Support:
    known = known or Support()
    for i, (label, confirms) in enumerate(events):
        known = observe(known, label, "support" if confirms else "contradict", NOW + i)
    return known


@given(EVENTS)
def test_what_is_written_is_read_back(events: list[tuple[str | None, bool]]) -> None:
    known = observed(events)
    assert read_support(support_info(known), 0) == known


@given(EVENTS.filter(lambda events: len({normalized_context(label) for label, _ in events}) <= MAX_SLICES))
def test_strength_is_the_share_of_confirmations(events: list[tuple[str | None, bool]]) -> None:
    known = observed(events)
    share = sum(confirms for _, confirms in events) / len(events) if events else 0.5
    assert known.total_observations == len(events)
    assert known.global_strength == pytest.approx(share)


@given(EVENTS)
def test_the_latest_contexts_are_kept(events: list[tuple[str | None, bool]]) -> None:
    latest = dict.fromkeys(normalized_context(label) for label, _ in reversed(events))
    assert {row.context for row in observed(events).slices} == set(list(latest)[:MAX_SLICES])


def test_a_dropped_slice_counts_in_the_update_that_drops_it_alone() -> None:
    eight = [(label, False) for label in "abcdefgh"]
    ninth = observed([*eight, ("i", True)])
    assert (ninth.total_observations, ninth.global_strength) == (9, 1 / 9)
    assert [row.context for row in ninth.slices] == list("ihgfedcb")
    tenth = observe(ninth, "i", "support", NOW + 99)
    assert (tenth.total_observations, tenth.global_strength) == (9, 2 / 9)


def test_counters_of_nothing_are_neutral() -> None:
    assert read_support({"confirmations": 0, "contradictions": 0}, NOW) == Support()
