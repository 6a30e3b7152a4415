"""What a long session costs: both sides do the same, and a side that does not is found out."""

from dataclasses import replace
from itertools import count

import pytest

from benchmarks import compaction_turns, context_assembly, full_text_grep
from benchmarks.compaction_turns import CompactionTurns
from benchmarks.context_assembly import ContextAssembly
from benchmarks.full_text_grep import FullTextGrep
from benchmarks.timing import DisagreementError
from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance, ProtectedGuidance
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.summarizer.extractive import Centroid
from lcm.context.assembly.lossless import Lossless
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator import Utf16Units

pytestmark = pytest.mark.usefixtures("no_full_collections")

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


def test_a_side_that_does_otherwise_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    read, grep, checked, numbers = compaction_turns.contents, full_text_grep.grep, context_assembly._check, count()
    monkeypatch.setattr(compaction_turns, "contents", lambda file: read(file) | {"summaries": [(next(numbers),)]})
    monkeypatch.setattr(full_text_grep, "grep", lambda *asked: replace(grep(*asked), messages=()))
    monkeypatch.setattr(context_assembly, "_check", lambda ours, bare: checked(ours, bare[1:]))
    for choice, told in ((TURNS, "summaries"), (GREP, "different messages"), (ASSEMBLY, "different messages")):
        with pytest.raises(DisagreementError, match=told):
            choice.run(1, 3)
