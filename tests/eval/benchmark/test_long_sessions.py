"""What a long session costs: both sides do the same, and a side that does not is found out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eval.benchmark import compaction_turns, context_assembly, full_text_grep
from eval.benchmark.compaction_turns import CompactionTurns
from eval.benchmark.context_assembly import ContextAssembly
from eval.benchmark.full_text_grep import FullTextGrep
from eval.benchmark.timing import DisagreementError
from lcm.compaction.clustering.clustering import Clustering
from lcm.compaction.guidance.none import NoGuidance
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.summarizer.centroid import Centroid
from lcm.context.assembly.lossless import Lossless
from lcm.context.recall.grep import Grep
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator.utf16_units import Utf16Units

CLUSTERING = Clustering(Centroid(Hashing()), NoGuidance(), Utf16Units(), Hashing())
TURNS = CompactionTurns(CLUSTERING, sizes=[90, 50])
ASSEMBLY = ContextAssembly(Lossless(Utf16Units()), messages=300, budget_tokens=5000)
GREP = FullTextGrep(Utf16Units(), messages=300, queries=8, limit=10)


def test_each_size_of_a_conversation_is_compared() -> None:
    assert [one.name for one in TURNS.run(1, 3)] == [
        "cluster compaction, 50 messages",
        "cluster compaction, 90 messages",
    ]
    (assembly,) = ASSEMBLY.run(1, 3)
    assert 0 < assembly.facts["shown"] < 300
    assert [one.name for one in GREP.run(1, 3)] == ["full-text grep by time", "full-text grep by relevance"]


def test_sizes_and_parts_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^sizes must be different numbers of messages >= 40, got \[30\]"):
        replace(TURNS, sizes=[30])
    with pytest.raises(ValueError, match="guidance none"):
        replace(TURNS, compaction=replace(CLUSTERING, guidance=ProtectedGuidance(ByteScanner())))
    with pytest.raises(ValueError, match="budget_tokens must be >= 1"):
        replace(ASSEMBLY, budget_tokens=0)
    with pytest.raises(ValueError, match="limit must be >= 1"):
        replace(GREP, limit=0)


def test_a_compaction_that_writes_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    read = compaction_turns.contents
    numbers = iter(range(9))
    monkeypatch.setattr(compaction_turns, "contents", lambda file: read(file) | {"summaries": [(next(numbers),)]})
    with pytest.raises(DisagreementError, match="summaries"):
        TURNS.run(1, 3)


def test_a_grep_that_finds_less_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    grep: Callable[..., Grep] = full_text_grep.grep
    monkeypatch.setattr(full_text_grep, "grep", lambda *asked: replace(grep(*asked), messages=()))
    with pytest.raises(DisagreementError, match="different messages"):
        GREP.run(1, 3)


def test_an_assembly_that_shows_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(ours: Any, bare: Any) -> None:
        checked(ours, bare[1:])

    checked = context_assembly._check
    monkeypatch.setattr(context_assembly, "_check", check)
    with pytest.raises(DisagreementError, match="different messages"):
        ASSEMBLY.run(1, 3)
