"""What transcripts say of their messages reaches compaction, guidance and the tail of an assembly."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lcm.compaction.clustering.clustering import Clustering
from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.none import NoGuidance
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.compaction.summarizer.centroid import Centroid
from lcm.compaction.window import StoredWindow
from lcm.context.assembly.tail_turns import TailTurns
from lcm.records.conversation import Message
from lcm.retrieval.embedder.hashing import Hashing
from lcm.store.store import Store
from lcm.token_estimator.utf16_units import Utf16Units
from lcm.transcript.reading import read_transcripts
from lcm.transcript.recorded_metadata import recorded
from tests.support.workspaces import START

RULE = "You must never push to main on a Friday."
Lines = Callable[[Sequence[dict[str, Any]]], Sequence[dict[str, Any]]]


def chat(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    return messages


def openclaw(messages: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    entries = [
        {"type": "message", "id": f"e{i}", "parentId": f"e{i - 1}" if i else None, "message": message}
        for i, message in enumerate(messages)
    ]
    return [{"type": "session", "version": 3, "id": "0a1b"}, *entries]


def beside(said: dict[str, Any]) -> dict[str, Any]:
    return said


def in_metadata(said: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": said}


everywhere = pytest.mark.parametrize(
    ("lines", "place"), [(lines, place) for lines in (chat, openclaw) for place in (beside, in_metadata)]
)


def read(path: Path, lines: Lines, said: Sequence[dict[str, Any]]) -> Sequence[Message]:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines(said)))
    (transcript,) = read_transcripts(path)
    return transcript.messages


@everywhere
def test_a_bundle_that_a_transcript_names_stays_together_in_every_tail(
    tmp_path: Path, lines: Lines, place: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """The newest of 6 stands; it shares a bundle with the 2 before it, so 3 are left to compact."""
    said = [
        {"role": "user", "content": f"turn {i}", **(place({"continuity_bundle_id": "b1"}) if i > 2 else {})}
        for i in range(6)
    ]
    messages = read(tmp_path / "talk.jsonl", lines, said)
    store = Store(opened_at=START)
    store.append("c", messages, Utf16Units())
    embedder = Hashing()
    compaction = Clustering(Centroid(embedder), NoGuidance(), Utf16Units(), embedder, min_turns=1, tail_budget_tokens=0)
    clusters = compaction.clusters(StoredWindow(store, "c"))
    assert [len(cluster) for cluster in clusters] == [3]
    turns = TailTurns(messages, Utf16Units(), as_entries=True)
    assert [turn.bundle for turn in turns[3:]] == ["b1"] * 3
    assert "b1" not in {turn.bundle for turn in turns[:3]}


@everywhere
def test_a_rule_whose_record_says_that_it_is_unstable_is_not_kept(
    tmp_path: Path, lines: Lines, place: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    said = [
        {"role": "user", "content": RULE, **place({"stability_weight": 0.0})},
        {"role": "user", "content": RULE},
        {"role": "assistant", "content": RULE, **place({"stability_weight": 0.9, "provenance_class": "host"})},
    ]
    messages = read(tmp_path / "talk.jsonl", lines, said)
    shards = ProtectedGuidance(ClauseRules()).shards(messages, "c", START, incidents=Counter())
    assert [shard and (shard.stability, shard.provenance) for shard in shards] == [
        None,
        (0.5, "session_turn"),
        (0.9, "host"),
    ]


def test_a_record_says_before_its_metadata_and_that_before_the_envelope() -> None:
    def message(**envelope: object) -> Message:
        return Message("m", "user", "", "s", envelope=envelope)

    native = {"k": 1, "metadata": {"k": 2}}
    assert recorded(message(native=native, k=3, metadata={"k": 4}), "k") == 1
    assert recorded(message(native={"metadata": {"k": 2}}, k=3), "k") == 2
    assert recorded(message(native={"metadata": "none"}, k=3, metadata={"k": 4}), "k") == 3
    assert recorded(message(native="text", metadata={"k": None}), "k", 5) is None
    assert recorded(message(native=[]), "k", 5) == 5
