"""The gate: everything is admitted, and what a user said is promoted where it is worth it."""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.records.conversation import Message
from lcm.records.document import Candidate
from lcm.writing.admission.gating import Gating
from lcm.writing.admission.intake import Intake
from lcm.writing.deduplication import KeepAll
from tests.lcm.refusals import assert_refused
from tests.lcm.writing.admission.tables import TOWARDS, Table, around, candidate, document, messages
from tests.support.workspaces import minute

GATE = Gating()
PLAIN = "The kettle broke"
COSINES = st.lists(st.floats(-1, 1), max_size=10)
WORDS = st.lists(
    st.sampled_from(["I prefer tea", "fixed it", "src/a.go", "call f()", "E1000", "2025-03-14", "nothing", "HEAD"]),
    max_size=6,
).map(" ".join)


def assessed(gate: Gating, table: Table, text: str = PLAIN, **message: Any) -> Any:
    heard = [replace(one, **message) for one in messages(text)]
    return gate.assess(candidate(text), TOWARDS, table, heard, minute(5), incidents=Counter())


def turn(name: str, cosine: float, **values: Any) -> tuple[Any, float]:
    return document(name, "the like", **{"role": "user", "is_durable": False} | values), cosine


def memory(name: str, cosine: float, **values: Any) -> tuple[Any, float]:
    return turn(name, cosine, **{"is_durable": True} | values)


@given(st.lists(st.tuples(WORDS, COSINES, COSINES), min_size=1, max_size=4))
def test_every_signal_is_in_the_unit_interval_g_between_its_parts_and_no_batch_matters(
    rows: list[tuple[str, list[float], list[float]]],
) -> None:
    for gate in (GATE, Gating(rules="original")):
        together = gate.signals([text for text, _, _ in rows], [known for _, *known in rows])
        for found, (text, turns, memories) in zip(together, rows, strict=True):
            assert [found] == gate.signals([text], [(turns, memories)])
            assert all(0 <= value <= 1 for value in [*found.features.values(), found.g])
            low, high = sorted([found.gconv, found.gtech])
            assert low - 1e-12 <= found.g <= high + 1e-12
            assert found.t > 0 or found.g == found.gconv
            assert found.t < 1 or found.g == found.gtech
            assert memories or found.h == 1
            assert found.s < 1 or found.r == 0
            assert found.is_passed == (found.g >= gate.threshold)


def test_the_threshold_is_inclusive() -> None:
    (first,) = GATE.signals([PLAIN], [([], [])])
    assert first.g == 0.35 * 1 == GATE.threshold
    assert first.is_passed
    assert not Gating(threshold=0.36).signals([PLAIN], [([], [])])[0].is_passed


def test_what_is_new_is_promoted_and_what_is_known_only_where_all_is() -> None:
    assert assessed(GATE, Table()).is_durable
    table = Table().holding(memory("m", 0.6))
    known, always = assessed(GATE, table), assessed(Gating(promotion="always"), table)
    assert (known.is_admitted, known.is_durable, always.is_durable) == (True, False, True)
    assert known.score == pytest.approx(0.35 * (1 - 0.6))
    assert known.reason == "G 0.140 is below 0.350"
    assert (always.score, always.features) == (known.score, known.features)


def test_what_others_said_is_admitted_and_promoted_only_where_their_role_is_named() -> None:
    for role in ("assistant", "tool", "system"):
        for promotion in ("gated", "always"):
            found = assessed(Gating(promotion=promotion), Table(), role=role)
            assert (found.is_admitted, found.is_durable, found.score, found.features) == (True, False, None, {})
            assert found.reason == f"said by the {role}: not gated"
        assert assessed(Gating(roles=["user", role]), Table(), role=role).is_durable


def test_the_last_source_message_says_whose_a_candidate_is() -> None:
    heard = [
        Message(name, role, "words", "s", created_at=minute(i))
        for i, (name, role) in enumerate([("a", "user"), ("b", "assistant"), ("c", "user")])
    ]
    gated = [
        GATE.assess(Candidate(PLAIN, sources), TOWARDS, Table(), heard, minute(5), incidents=Counter()).score
        is not None
        for sources in [("a",), ("a", "b"), ("a", "b", "c"), ("elsewhere",)]
    ]
    assert gated == [True, False, True, False]


def test_turns_are_what_the_roles_said_and_memories_what_was_promoted() -> None:
    table = Table().holding(
        turn("t", 0.9),
        memory("m", 0.88),
        turn("answer", 0.95, role="assistant"),
        memory("summary", 0.95, kind="summary"),
        memory("guidance", 0.95, kind="guidance"),
        memory("authored", 0.95, kind="authored", role=""),
        memory("dream", 0.95, kind="dream", role=""),
    )
    found = assessed(GATE, table)
    assert found.audit["turns"] == pytest.approx({"t": 0.9, "m": 0.88})
    assert found.audit["memories"] == pytest.approx({"m": 0.88})
    assert (found.features["f"], found.features["s"]) == (2 / 5, 1 / 3)


def test_a_turn_may_count_itself() -> None:
    table = Table().holding(*(turn(f"t{i}", 0.9) for i in range(4)))
    assert assessed(GATE, table).features["f"] == 4 / 5
    assert assessed(Gating(rules="original"), table).features["f"] == 1
    assert assessed(Gating(rules="original"), Table()).features["f"] == 1 / 5
    crowded = assessed(Gating(rules="original", turn_hits=2, turn_saturation=10), table)
    assert (crowded.features["f"], len(crowded.audit["turns"])) == (2 / 10, 1)  # itself takes one of the places


def test_only_the_nearest_are_compared() -> None:
    table = Table().holding(*(memory(f"m{i}", 0.9 - i / 10) for i in range(8)))
    found = assessed(GATE, table)
    assert list(found.audit["memories"]) == ["m0", "m1", "m2", "m3", "m4"]
    assert found.features["h"] == pytest.approx(1 - (0.9 + 0.8 + 0.7 + 0.6 + 0.5) / 5)


def test_without_a_vector_nothing_is_known_and_what_is_said_beside_the_text_counts_too() -> None:
    one, table = candidate("Ada fixed it", content="in src/cache.go"), Table().holding(memory("m", 1.0))
    found = GATE.assess(one, None, table, messages("hello"), minute(5), incidents=Counter())
    assert (found.features["h"], found.features["r"], found.audit["has_vector"]) == (1, 0, False)
    assert found.audit["fired"] == {"file_path": 1, "resolution": 1}


def test_the_stability_is_that_of_the_role_or_g() -> None:
    assert assessed(GATE, Table()).audit["stability"] == 0.5
    said = "I prefer 2 teas: my name is Ann, Dr. Bell said on 2025-03-14"
    high = assessed(GATE, Table(), said)
    assert high.score == pytest.approx(0.35 + 0.25 * 1)  # every conversational pattern fires
    assert high.audit["stability"] == high.score


def test_a_promoted_candidate_becomes_a_durable_document_and_another_does_not() -> None:
    table = Table().holding(memory("m", 0.6))
    intake = Intake(GATE, KeepAll())
    plain, worth = candidate(PLAIN), candidate("I prefer tea: my name is Ann, Dr. Bell said on 2025-03-14 at 4")
    taken = intake.take_in([plain, worth], [TOWARDS, TOWARDS], [minute(2)] * 2, around(table), incidents=Counter())
    assert [decision.action for decision, _ in taken] == ["create", "create"]
    assert [decision.candidate.is_durable for decision, _ in taken] == [False, True]
    assert [decision.score is not None for decision, _ in taken] == [True, True]


def test_bad_settings_are_refused() -> None:
    for values, words in (
        ({"roles": ["user", "bot"]}, r"^roles has no 'bot'; choose from: system, user, assistant, tool"),
        ({"weights": {**GATE.weights, "w4t": 1}}, r"^weights has no 'w4t'; choose from: w1c, "),
        ({"weights": {"w1c": 1}}, r"^weights must name w2c, w3c, w1t, w2t, w3t, got w1c"),
        ({"weights": {**GATE.weights, "w1c": math.nan}}, r"^weights.w1c must be >= 0, got nan"),
        ({"role_stability": {**GATE.role_stability, "user": 2}}, r"^role_stability.user must be in \[0, 1\], got 2"),
    ):
        with pytest.raises(ValueError, match=words):
            Gating(**values)  # type: ignore[arg-type]
    assert_refused(Gating, "be one of: always, gated", promotion="never")
    assert_refused(Gating, "be one of: corrected, original", rules="best")
    assert_refused(Gating, "be in [0, 1]", threshold=math.nan)
    assert_refused(Gating, "be > 0", technical_norm=0)
    assert_refused(Gating, "be >= 1", turn_hits=0, memory_saturation=0)
    assert_refused(Gating, "be in [-1, 1]", turn_cosine=1.1)
