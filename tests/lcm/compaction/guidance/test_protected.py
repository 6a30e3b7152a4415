from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pytest

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.errors import ModelError
from lcm.protocols.models import TextKind, Vectors
from lcm.records.conversation import Message

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RULE = "Never push on Fridays."
HINT = "maybe we prefer arenas here"
PROTOTYPE = "Prefer deterministic operational guidance over generic defaults."


@dataclass(frozen=True, slots=True)
class Near:
    """Texts in `near` are near to each other, others are not; fails on those in `broken`."""

    near: frozenset[str]
    broken: frozenset[str] = frozenset()
    calls: list[list[str]] = field(default_factory=list)
    name: str = "near"
    dim: int = 3

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        self.calls.append(list(texts))
        if self.broken.intersection(texts):
            raise ModelError("no such text")
        rows = np.array(
            [[1, 0, 0] if text in self.near else [0, text.endswith("."), not text.endswith(".")] for text in texts],
            dtype=np.float32,
        )
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def message(content: str, role: str = "user", **envelope: object) -> Message:
    return Message("m", role, content, "s", envelope=envelope)  # type: ignore[arg-type]


def guidance(embedder: Near | None = None) -> ProtectedGuidance:
    return ProtectedGuidance(ClauseRules(), booster_embedder=embedder)


def test_a_rule_of_a_user_is_kept_word_for_word() -> None:
    (shard,) = guidance().shards([message(f"  {RULE}\n")], "c", NOW, incidents=Counter())
    assert shard is not None
    assert (shard.text, shard.protected_by, shard.stability) == (RULE, "words", 0.5)
    assert (shard.tokens, shard.conversation_id, shard.created_at) == (len(RULE) // 4, "c", NOW)
    assert shard.provenance == "session_turn"


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_a_rule_of_anybody_else_is_not_stable_enough(role: str) -> None:
    assert guidance().shards([message(RULE, role)], "c", NOW, incidents=Counter()) == [None]


@pytest.mark.parametrize(
    ("weight", "stability"), [("0.35", 0.35), (1.4, 1.0), ("-1", 0.0), (None, 0.0), ("much", 0.0), (float("nan"), 0.0)]
)
def test_a_message_may_say_itself_how_stable_it_is(weight: object, stability: float) -> None:
    for said in (message(RULE, stability_weight=weight), message(RULE, metadata={"stability_weight": weight})):
        (verdict,) = guidance().verdicts([said], incidents=Counter())
        assert (verdict.stability, verdict.by_words) == (stability, stability >= 0.35)


def test_an_embedder_adds_what_only_hints_and_is_asked_once_for_all() -> None:
    embedder = Near(frozenset({PROTOTYPE, HINT}))
    texts = [RULE, HINT, "we could focus on tests", "lunch was good"]
    found = guidance(embedder).shards([message(text) for text in texts], "c", NOW, incidents=Counter())
    assert [shard and shard.protected_by for shard in found] == ["words", "embedding", None, None]
    assert embedder.calls[1:] == [[HINT, "we could focus on tests"]]


def test_an_embedder_that_fails_adds_nothing_and_takes_nothing_away() -> None:
    embedder = Near(frozenset({PROTOTYPE, HINT}), broken=frozenset({HINT}))
    protected = guidance(embedder)
    incidents = Counter[str]()
    found = protected.shards([message(RULE), message(HINT)], "c", NOW, incidents=incidents)
    assert [shard and shard.protected_by for shard in found] == ["words", None]
    assert incidents == {"guidance text not embedded": 1}


def test_a_prototype_that_cannot_be_embedded_is_left_out() -> None:
    embedder = Near(
        frozenset({PROTOTYPE, HINT}),
        broken=frozenset({"Avoid unsafe or undesired implementation choices in hot paths."}),
    )
    protected = guidance(embedder)
    incidents = Counter[str]()
    (shard,) = protected.shards([message(HINT)], "c", NOW, incidents=incidents)
    assert shard is not None
    assert incidents == {"guidance prototype not embedded": 1}
