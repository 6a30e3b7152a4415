"""Finders beside labels by hand, on sessions of four kinds: at least as good as what docs/survival.md tells."""

import pytest

from lcm.compaction.facts.reading import KINDS
from tests.support.labelled_facts import SESSIONS, Half, agreement, labelled, pooled


@pytest.mark.parametrize(("half", "least"), [("development", 0.93), ("test", 0.82)])
def test_finders_agree_with_labels(half: Half, least: float) -> None:
    every = pooled([one for name in SESSIONS for one in agreement(labelled(name, half)).values()])
    assert every.precision >= least
    assert every.recall >= least


def test_there_are_three_hundred_labels_of_every_kind() -> None:
    halves: tuple[Half, Half] = ("development", "test")
    messages = [one for name in SESSIONS for half in halves for one in labelled(name, half)]
    kinds = [label.kind for one in messages for label in one.labels]
    assert len(kinds) >= 300
    assert set(kinds) == set(KINDS)
