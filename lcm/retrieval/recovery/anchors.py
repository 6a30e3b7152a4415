"""How much a text says of when."""

from functools import lru_cache

from lcm.retrieval.recovery import vocabulary

FULL_ANCHORS = 3
"""Different anchors from which a text is full of them."""


@lru_cache(maxsize=4096)  # half of the time of a question about time, where its turns were looked at before
def anchor_density(text: str) -> float:
    """min(1, different anchors / 3): dates, clock times, years, weekdays, words like yesterday or last week.

    Anchors are counted in lower case. Source: libravdb memory 1.4.4.
    """
    found = {match.lower() for one in vocabulary.patterns("anchor_patterns") for match in one.findall(text)}
    return min(1.0, len(found) / FULL_ANCHORS)
