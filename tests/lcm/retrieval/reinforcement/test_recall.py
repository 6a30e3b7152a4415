"""What being recalled changes."""

from functools import partial

import polars as pl
import pytest

from lcm.protocols.reinforcement import USE_SCHEMA
from lcm.retrieval.decay import Exponential, NoDecay, Weibull
from lcm.retrieval.reinforcement import AccessCount, DecayTiers, NoReinforcement, Recall
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows

LONG_AGO = days_ago(5)


def changed(
    reinforcement: Recall | NoReinforcement | AccessCount, used: list[str], documents: pl.DataFrame
) -> list[tuple]:
    found = reinforcement.after_recall(used, documents, NOW)
    assert dict(found.schema) == USE_SCHEMA
    return found.rows()


def test_the_first_of_an_answer_alone_count_as_used_and_the_others_stay() -> None:
    documents = rows(access_count=[None, 2, 3], last_accessed_at=[LONG_AGO, None, None])
    for reinforcement in (Recall(Weibull(), DecayTiers(), recalled=2), AccessCount(recalled=2)):
        assert changed(reinforcement, ["d2", "d0", "d1"], documents) == [
            *(("d0", 1, NOW, "working"), ("d2", 4, NOW, "working")),
        ]


def test_a_document_named_twice_or_not_given_counts_once_or_not_at_all() -> None:
    documents = rows(access_count=[2], decay_tier=["peripheral"])  # rises at 3 accesses: judged after this one
    assert changed(Recall(Weibull(), DecayTiers()), ["d0", "d0", "gone"], documents) == [("d0", 3, NOW, "working")]


def test_what_was_not_used_keeps_its_use_when_its_tier_changes() -> None:
    documents = rows(created_at=[days_ago(90), NOW], access_count=[1, 0], last_accessed_at=[days_ago(80), None])
    assert changed(Recall(Weibull(), DecayTiers()), [], documents) == [("d0", 1, days_ago(80), "peripheral")]


def test_tiers_of_the_newest_alone_are_looked_after() -> None:
    documents = rows(created_at=[days_ago(99), days_ago(98), days_ago(97)])  # all old and little used
    assert [row[0] for row in changed(Recall(Weibull(), DecayTiers(), maintained=2), [], documents)] == ["d1", "d2"]
    assert changed(Recall(Weibull(), DecayTiers(), maintained=0), ["d0"], documents) == [("d0", 1, NOW, "working")]


def test_a_session_summary_keeps_its_tier() -> None:
    documents = rows(created_at=[days_ago(99)] * 2, kind=["session-summary", "message"])
    assert changed(Recall(Weibull(), DecayTiers()), ["d0"], documents) == [
        ("d0", 1, NOW, "working"),
        ("d1", 0, None, "peripheral"),
    ]


def test_tiers_and_decay_are_those_of_the_settings() -> None:
    documents = rows(access_count=[1], importance=[0.7])
    tiers = DecayTiers(core_access_threshold=2, core_importance_threshold=0.7)
    assert changed(Recall(NoDecay(), tiers), ["d0"], documents) == [("d0", 2, NOW, "core")]
    assert changed(Recall(Weibull(), tiers), ["d0"], documents) == [("d0", 2, NOW, "working")]


def test_a_bad_number_is_refused() -> None:
    recall = partial(Recall, Weibull(), DecayTiers())
    assert_refused(recall, "be >= 1", recalled=0)
    assert_refused(recall, "be >= 0", maintained=-1)
    with pytest.raises(ValueError, match="recalled must be >= 1, got 0; reinforcement=none counts no use"):
        AccessCount(recalled=0)


def test_documents_are_judged_as_durable_where_nobody_asks() -> None:
    old = rows(created_at=[days_ago(1)], access_count=[0])
    decay = Exponential(session_rate=1.0, durable_rate=0.0, global_rate=1.0)  # by any other rate nothing is left
    assert changed(Recall(decay, DecayTiers()), [], old.drop("scope_class")) == []
    gone = Exponential(session_rate=0.0, durable_rate=1.0, global_rate=0.0)
    assert changed(Recall(gone, DecayTiers()), [], old.drop("scope_class")) == [("d0", 0, None, "peripheral")]


def test_counting_accesses_leaves_decay_tiers_alone() -> None:
    documents = rows(access_count=[99, 0], decay_tier=["peripheral", "core"], created_at=[days_ago(900)] * 2)
    assert changed(AccessCount(), ["d0", "gone", "d0"], documents) == [("d0", 100, NOW, "peripheral")]
