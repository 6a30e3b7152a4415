"""BEAM: the loader's rules on a small copy of the format."""

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from eval.dataset.beam import Beam
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.eval.dataset.evidence import evidence
from tests.support.small_beam import NATIVE, write_lines


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A folder with one conversation of each of three sizes."""
    for size in ("100K", "500K", "1M"):
        write_lines(tmp_path, size)
    return str(tmp_path)


def test_messages_keep_order_role_session_and_the_day_last_named(small: str) -> None:
    dataset = Beam(small).load()
    (transcript,) = dataset.transcripts
    assert [m.role for m in transcript.messages] == ["user", "assistant"] * 3
    assert transcript.workspace_id == "beam-100K-1"
    sessions = [m.session_id for m in transcript.messages]
    assert [sessions.index(session) for session in sessions] == [0] * 4 + [4] * 2
    first, last = datetime(2023, 11, 5, tzinfo=UTC), datetime(2024, 3, 15, tzinfo=UTC)
    assert [m.created_at for m in transcript.messages] == [first, first, first, first, last, last]
    assert {query.asked_at for query in dataset.queries} == {last}


def test_a_plan_marker_is_cut_off_the_words_and_stays_in_the_native_message(small: str) -> None:
    (transcript,) = Beam(small).load().transcripts
    words = [
        "I keep bees",
        "Write a ->-> b for the arrow",
        "How many hives?\nTell me.",
        "Four",
        "Five hives now",
        "Noted",
    ]
    assert [m.content for m in transcript.messages] == words
    assert [[part.text for part in m.parts] for m in transcript.messages] == [[text] for text in words]
    assert [rebuild(message) for message in transcript.messages] == [native for group in NATIVE for native in group]


def test_evidence_of_every_shape_is_judged_once_and_what_names_no_message_is_counted(small: str) -> None:
    dataset = Beam(small).load()
    assert evidence(dataset) == {
        "Which queen?": [],
        "How many hives?": ["Four", "Five hives now"],
        "Nothing cited": [],
        "In which order?": ["I keep bees", "Five hives now", "Four"],
        "Sum it up": [],
        "When?": ["How many hives?\nTell me."],
    }
    assert dataset.qrels["relevance"].unique().to_list() == [1]
    assert dataset.notes[1:] == (
        "2 messages end with a mark of the generation plan, which is cut off",
        "3 evidence entries name no message and are left out",
    )


def test_of_a_clean_conversation_the_notes_tell_its_file_alone(tmp_path: Path) -> None:
    chat = [{"batch_number": 1, "time_anchor": None, "turns": [list(NATIVE[2])]}]
    digest = sha256(write_lines(tmp_path, chat=chat, probing_questions={}).read_bytes()).hexdigest()
    assert Beam(str(tmp_path)).load().notes == (
        f"beam_100K_dev.jsonl.gz is no known release, taken as it is (sha256 {digest})",
    )


def test_a_query_has_its_type_its_place_and_a_summary_as_reference(small: str) -> None:
    dataset = Beam(small).load()
    assert [(query.query_id, query.category) for query in dataset.queries] == [
        ("beam-100K-1/abstention/0", "abstention"),
        ("beam-100K-1/knowledge_update/0", "knowledge_update"),
        ("beam-100K-1/knowledge_update/1", "knowledge_update"),
        ("beam-100K-1/event_ordering/0", "event_ordering"),
        ("beam-100K-1/summarization/0", "summarization"),
        ("beam-100K-1/temporal_reasoning/0", "temporal_reasoning"),
    ]
    conversation_id = dataset.transcripts[0].conversation_id
    assert dataset.references.rows() == [(conversation_id, "beam-100K-1/summarization/0", "Bees, then more hives.")]


def test_only_the_file_of_the_size_is_read_and_its_digest_hangs_on_that(small: str) -> None:
    before, other = Beam(small).load().digest, Beam(small, size="1M").load().digest
    write_lines(Path(small), "1M", topic={})
    assert Beam(small, size="1M").load().digest != other
    (Path(small) / "beam_1M_dev.jsonl.gz").unlink()
    assert Beam(small).load().digest == before
    with pytest.raises(DatasetError, match=r"holds no conversations of 1M: expected chats/1M/<n>/chat\.json"):
        Beam(small, size="1M").load()


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be one of: 100K, 10M, 1M, 500K, got '2M'"):
        Beam(size="2M")  # type: ignore[arg-type]
