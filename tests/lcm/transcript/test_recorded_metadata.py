"""What a transcript says of its messages is found beside the words, in their metadata, or in the envelope."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import ProtectedGuidance
from lcm.context.assembly.continuity import TailTurns
from lcm.records.conversation import Message
from lcm.token_estimator import Utf16Units
from lcm.transcript.parts import recorded
from lcm.transcript.reading import read_transcripts
from tests.lcm.transcript.recordings import write
from tests.support.workspaces import START

RULE = {"role": "user", "content": "You must never push to main on a Friday."}


@pytest.mark.parametrize("is_beside", [True, False])
@pytest.mark.parametrize("is_chat", [True, False])
def test_guidance_and_the_tail_follow_what_a_transcript_says(is_chat: bool, is_beside: bool, tmp_path: Path) -> None:
    def saying(**said: Any) -> dict[str, Any]:
        message = RULE | (said if is_beside else {"metadata": said})
        return message if is_chat else {"type": "message", "timestamp": START.isoformat(), "message": message}

    lines = [
        saying(stability_weight=0.0),
        saying(continuity_bundle_id="b1"),
        saying(stability_weight=0.9, provenance_class="host", continuity_bundle_id="b1"),
    ]
    (transcript,) = read_transcripts(write(tmp_path / "talk.jsonl", *lines))
    shards = ProtectedGuidance(ClauseRules()).shards(transcript.messages, "c", START, incidents=Counter())
    assert [shard and (shard.stability, shard.provenance) for shard in shards] == [
        None,
        (0.5, "session_turn"),
        (0.9, "host"),
    ]
    bundles = [turn.bundle for turn in TailTurns(transcript.messages, Utf16Units(), as_entries=True)]
    assert bundles[1:] == ["b1", "b1"]
    assert bundles[0] != "b1"


def test_a_record_says_before_its_metadata_and_that_before_the_envelope() -> None:
    def message(**envelope: object) -> Message:
        return Message("m", "user", "", "s", envelope=envelope)

    native = {"k": 1, "metadata": {"k": 2}}
    assert recorded(message(native=native, k=3, metadata={"k": 4}), "k") == 1
    assert recorded(message(native={"metadata": {"k": 2}}, k=3), "k") == 2
    assert recorded(message(native={"metadata": "none"}, k=3, metadata={"k": 4}), "k") == 3
    assert recorded(message(native="text", metadata={"k": None}), "k", 5) is None
    assert recorded(message(native=[]), "k", 5) == 5
