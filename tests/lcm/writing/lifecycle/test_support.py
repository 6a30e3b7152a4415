"""Laws of confirmations and contradictions; the vectors of the original are in tests/golden."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.lifecycle import Support, observe, read_support, support_info

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


def test_counters_of_nothing_are_neutral() -> None:
    assert read_support({"confirmations": 0, "contradictions": 0}, NOW) == Support()
