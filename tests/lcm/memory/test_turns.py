"""A memory in a live session: turns, compaction, contexts, and what the session rules leave out."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from lcm.compaction.clustering import Clustering
from lcm.compaction.guidance.protected import NoGuidance, ProtectedGuidance
from lcm.compaction.guidance.scanner import ByteScanner
from lcm.compaction.lossless.lossless import Lossless
from lcm.compaction.summarizer.chain import Truncate
from lcm.compaction.summarizer.extractive import Centroid
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.errors import ModelError
from lcm.memory.memory import Memory
from lcm.memory.session import SessionRules
from lcm.memory.system import System
from lcm.protocols.compaction import Guidance
from lcm.protocols.context import ContextRequest
from lcm.protocols.models import TextKind, Vectors
from lcm.records.conversation import Message, Part
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator import Utf16Units
from lcm.transcript.parts import decompose
from tests.support.workspaces import LINES, minute, system, transcript

TOKENS = Utf16Units()
CUT = "a summary is the cut beginning of its source"
NO_SMALLER = "a summary is no smaller than its source"
"""With what stands around it; the talks are short."""
SMALL = {
    "budget_tokens": 60,
    "fresh_tail_count": 2,
    "leaf_chunk_tokens": 24,
    "min_leaf_tokens": 0,
    "leaf_target_tokens": 10,
    "condensed_target_tokens": 10,
    "leaf_min_fanout": 2,
}
"""Settings under which a short talk is compacted."""


def compacting(**changes: object) -> System:
    compaction = Lossless(Truncate(max_units=40, aggressive_max_units=20), TOKENS, **SMALL | changes)  # type: ignore[arg-type]
    return replace(system(), compaction=compaction, assembly=LosslessAssembly(TOKENS, fresh_tail_count=2))


def turns(memory: Memory, lines: Sequence[str] = LINES, **more: object) -> list[bool]:
    said = transcript(lines).messages
    return [memory.take_turn("talk", said[i : i + 2], **more).is_compacted for i in range(0, len(said), 2)]  # type: ignore[arg-type]


def test_a_long_session_is_compacted_on_the_way_and_found_again_at_once() -> None:
    with Memory.open(compacting()) as memory:
        assert any(turns(memory, LINES * 3))
        assert len(memory.store.messages("talk")) == 3 * len(LINES)
        assert memory.documents.is_empty()
        memory.catch_up()
        assert memory.search("goats near the river", minute(99))["text"][0] == f"Ada: {LINES[2]}"


def test_turns_heard_in_another_process_are_compacted_too(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    with Memory.open(compacting(), path) as one, Memory.open(compacting(), path) as other:
        said = transcript(LINES * 2).messages
        for i in range(0, len(said), 2):
            (one if i % 4 else other).take_turn("talk", said[i : i + 2])
        assert [message.message_id for message in one.store.messages("talk")] == [m.message_id for m in said]
        covered = one.store.edges("talk").filter("is_message")["source_id"]
        assert covered.n_unique() == len(covered) > 0


def test_a_forced_compaction_of_every_conversation_leaves_the_tails() -> None:
    with Memory.open(compacting(budget_tokens=100_000)) as memory:
        for name in ("one", "two"):
            memory.ingest(transcript(name=name))
        reports = memory.compact(is_forced=True)
        assert [report.reason for report in reports] == ["compacted", "compacted"]
        tails = [[entry.item_id for entry in memory.store.context(name)][-2:] for name in ("one", "two")]
        assert tails == [[f"{name}:{i}" for i in (6, 7)] for name in ("one", "two")]


def test_a_deadline_ends_compaction_between_two_passes() -> None:
    ticks = count(step=60)
    with Memory.open(compacting(sweep_deadline_seconds=90.0, budget_tokens=100_000)) as memory:
        memory.ingest(transcript(LINES * 4))
        (hurried,) = memory.compact(is_forced=True, clock=lambda: float(next(ticks)))
        assert hurried.reason == "time limit"
        (unhurried,) = memory.compact(is_forced=True)
        assert unhurried.reason == "compacted"


class Speechless(Hashing):
    """An embedder whose model is gone."""

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        raise ModelError("gone")


def clustering(guidance: Guidance, **settings: int) -> System:
    settings = {"min_turns": 2, "tail_budget_tokens": 1} | settings
    return replace(system(), compaction=Clustering(Centroid(Hashing()), guidance, TOKENS, Hashing(), **settings))


def test_what_compaction_survives_is_counted_in_the_memory_that_was_compacted_alone() -> None:
    guidance = ProtectedGuidance(ByteScanner(), booster_embedder=Speechless())
    hinting = [f"we should consider plan {number}, and the one before it" for number in range(6)]
    made = clustering(guidance, session_token_budget=20)
    with Memory.open(made) as one, Memory.open(made) as other:
        assert any(turns(one, hinting))
        after_turns = Counter(one.incidents)
        assert set(after_turns) == {"guidance prototype not embedded", CUT}
        assert any(turns(other, hinting))
        other.ingest(transcript(hinting, "more"))
        assert [report.is_compacted for report in other.compact(["more"])] == [True]
        assert one.incidents == after_turns
        assert other.incidents.total() > after_turns.total()


def test_memories_of_one_system_do_not_know_what_the_other_tried_in_vain() -> None:
    made = clustering(NoGuidance(), target_cluster_size=3)
    with Memory.open(made) as one, Memory.open(made) as other:
        for memory in (one, other):
            memory.ingest(transcript(["", "...", "", "goats", "kettles"]))
            for _ in range(2):
                memory.compact()
            assert memory.incidents == {"cluster without words: left as it is": 1}


@pytest.mark.parametrize("patterns", ["ignore_patterns", "stateless_patterns"])
def test_a_session_that_the_rules_leave_out_is_not_stored(patterns: str) -> None:
    rules = SessionRules(**{patterns: ("agent:*:cron",)})
    with Memory.open(replace(compacting(), session=rules)) as memory:
        left_out = transcript(name="agent:ann:cron")
        assert memory.ingest(left_out) == 0
        assert memory.take_turn("agent:ann:cron", left_out.messages).reason == "session excluded"
        assert memory.store.conversations().is_empty()
        assert memory.ingest(transcript(name="agent:ann:main")) == len(LINES)


def test_a_large_file_is_named_in_the_context_and_kept_in_the_message() -> None:
    body = "line of the report\n" * 50
    native = {"role": "user", "content": f'Read <file name="report.txt">{body}</file> please'}
    said = decompose(native)
    message = Message("m", said.role, said.content, "s", minute(0), parts=said.parts, envelope=said.envelope)
    with Memory.open(replace(compacting(), session=SessionRules(large_file_threshold_tokens=50))) as memory:
        memory.take_turn("talk", [message])
        (stored,) = memory.store.messages("talk")
        (context,) = memory.assemble("talk", [ContextRequest(10_000)])
    (file,) = stored.files
    assert file.file_id in context.items[0].text
    assert body not in context.items[0].text
    assert stored.parts == (Part("text", text=native["content"], metadata={"slot": "content"}),)
