from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pytest

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.errors import ModelError, UnrecordedReplyError
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
    error: type[ModelError] = ModelError
    calls: list[list[str]] = field(default_factory=list)
    name: str = "near"
    dim: int = 3

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        self.calls.append(list(texts))
        if self.broken.intersection(texts):
            raise self.error("no such text")
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


def test_a_rule_of_anybody_else_is_not_stable_enough() -> None:
    said = [message(RULE, role) for role in ("assistant", "tool", "system")]
    assert guidance().shards(said, "c", NOW, incidents=Counter()) == [None] * 3


def test_a_message_may_say_itself_how_stable_it_is() -> None:
    weights = {"0.35": 0.35, 1.4: 1.0, "-1": 0.0, None: 0.0, "much": 0.0, float("nan"): 0.0}
    for weight, stability in weights.items():
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
    avoid = "Avoid unsafe or undesired implementation choices in hot paths."
    for broken, protected_by, what in ((HINT, ["words", None], "text"), (avoid, ["words", "embedding"], "prototype")):
        protected, incidents = guidance(Near(frozenset({PROTOTYPE, HINT}), frozenset({broken}))), Counter[str]()
        found = protected.shards([message(RULE), message(HINT)], "c", NOW, incidents=incidents)
        assert [shard and shard.protected_by for shard in found] == protected_by
        assert incidents == {f"guidance {what} not embedded": 1}


def test_a_vector_that_a_replay_lacks_is_an_error() -> None:
    protected = guidance(Near(frozenset({PROTOTYPE}), frozenset({HINT}), UnrecordedReplyError))
    with pytest.raises(UnrecordedReplyError):
        protected.shards([message(RULE), message(HINT)], "c", NOW, incidents=Counter())
