"""BEAM: counts of the pinned files, and the loader's rules on a small copy of the format."""

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.beam import SINGLE_SHOT, Beam, Size
from eval.dataset.dataset import Dataset
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.support.small_beam import NATIVE, write_lines


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A folder with one conversation of each of three sizes."""
    for size in ("100K", "500K", "1M"):
        write_lines(tmp_path, size)
    return str(tmp_path)


def evidence(dataset: Dataset) -> dict[str, list[str]]:
    """Question -> the words of its evidence, in order."""
    words = {m.message_id: m.content for t in dataset.transcripts for m in t.messages}
    judged = list(dataset.qrels.iter_rows())
    return {q.text: [words[message] for query, message, _ in judged if query == q.query_id] for q in dataset.queries}


def test_messages_keep_order_role_and_session(small: str) -> None:
    (transcript,) = Beam(small).load().transcripts
    assert [m.role for m in transcript.messages] == ["user", "assistant"] * 3
    assert transcript.workspace_id == "beam-100K-1"
    sessions = [m.session_id for m in transcript.messages]
    assert sessions == [sessions[0]] * 4 + [sessions[4]] * 2
    assert sessions[0] != sessions[4]


def test_a_plan_marker_is_cut_off_a_user_message_wherever_words_are_indexed(small: str) -> None:
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


def test_every_message_rebuilds_exactly_with_its_marker(small: str) -> None:
    (transcript,) = Beam(small).load().transcripts
    assert [rebuild(message) for message in transcript.messages] == [native for group in NATIVE for native in group]


def test_a_message_has_the_day_last_named(small: str) -> None:
    (transcript,) = Beam(small).load().transcripts
    first, last = datetime(2023, 11, 5, tzinfo=UTC), datetime(2024, 3, 15, tzinfo=UTC)
    assert [m.created_at for m in transcript.messages] == [first, first, first, first, last, last]


def test_every_question_is_asked_on_the_last_day_named(small: str) -> None:
    assert {query.asked_at for query in Beam(small).load().queries} == {datetime(2024, 3, 15, tzinfo=UTC)}


def test_evidence_is_flattened_from_every_shape_and_judged_once(small: str) -> None:
    found = evidence(Beam(small).load())
    assert found["How many hives?"] == ["Four", "Five hives now"]
    assert found["In which order?"] == ["I keep bees", "Five hives now", "Four"]
    assert Beam(small).load().qrels["relevance"].unique().to_list() == [1]


def test_questions_without_evidence_stay_unjudged_queries(small: str) -> None:
    found = evidence(Beam(small).load())
    assert [text for text, words in found.items() if not words] == ["Which queen?", "Nothing cited", "Sum it up"]


def test_what_is_cut_off_and_what_names_no_message_is_counted(small: str) -> None:
    dataset = Beam(small).load()
    assert evidence(dataset)["When?"] == ["How many hives?\nTell me."]
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


def test_a_category_is_the_type_and_a_query_is_named_by_its_place(small: str) -> None:
    assert [(query.query_id, query.category) for query in Beam(small).load().queries] == [
        ("beam-100K-1/abstention/0", "abstention"),
        ("beam-100K-1/knowledge_update/0", "knowledge_update"),
        ("beam-100K-1/knowledge_update/1", "knowledge_update"),
        ("beam-100K-1/event_ordering/0", "event_ordering"),
        ("beam-100K-1/summarization/0", "summarization"),
        ("beam-100K-1/temporal_reasoning/0", "temporal_reasoning"),
    ]


def test_a_summary_is_the_reference_of_its_question(small: str) -> None:
    dataset = Beam(small).load()
    (transcript,) = dataset.transcripts
    assert dataset.references.rows() == [
        (transcript.conversation_id, "beam-100K-1/summarization/0", "Bees, then more hives.")
    ]


def test_ids_are_opaque_and_each_message_has_its_own(small: str) -> None:
    (transcript,) = Beam(small).load().transcripts
    ids = {m.message_id for m in transcript.messages} | {m.session_id for m in transcript.messages}
    ids |= {transcript.conversation_id}
    assert len(ids) == 6 + 2 + 1
    assert all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)


def test_the_system_never_sees_topic_or_answers(small: str) -> None:
    told = repr(Beam(small).load().transcripts)
    assert not [words for words in ("Secret", "more hives.", "unknown") if words in told]


def test_only_the_file_of_the_size_is_read(small: str) -> None:
    (Path(small) / "beam_500K_dev.jsonl.gz").unlink()
    assert [t.workspace_id for t in Beam(small, size="1M").load().transcripts] == ["beam-1M-1"]
    with pytest.raises(DatasetError, match=r"holds no conversations of 500K: expected chats/500K/<n>/chat\.json"):
        Beam(small, size="500K").load()


def test_sizes_have_different_digests_that_hang_on_their_own_file(small: str) -> None:
    sizes: tuple[Size, ...] = ("100K", "500K", "1M")
    assert len({Beam(small, size=size).load().digest for size in sizes}) == 3
    before, other = Beam(small).load().digest, Beam(small, size="1M").load().digest
    write_lines(Path(small), "1M", topic={})
    assert Beam(small).load().digest == before
    assert Beam(small, size="1M").load().digest != other


def test_a_file_of_no_known_release_is_refused_where_pinned(small: str) -> None:
    found = sha256((Path(small) / "beam_100K_dev.jsonl.gz").read_bytes()).hexdigest()
    with pytest.raises(DatasetError, match=f"sha256 is {found}, expected d6d17a5a.*dataset.pinned=false"):
        Beam(small, pinned=True).load()


def test_an_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be one of: 100K, 10M, 1M, 500K, got '2M'"):
        Beam(size="2M")  # type: ignore[arg-type]


if os.environ.get("LCM_DATASETS_DIR"):
    TYPES = ("abstention", *SINGLE_SHOT, "event_ordering", "instruction_following", "summarization")
    COUNTS: Mapping[Size, tuple[int, int, int, int, int, int, int]] = {
        "100K": (12, 3_466, 54, 1_284, 212, 643, 144),
        "500K": (21, 22_250, 210, 8_753, 377, 1_576, 251),
        "1M": (5, 8_876, 50, 3_442, 88, 575, 59),
    }
    """Conversations, messages, sessions, marks of the plan, judged questions, judgements, single-shot judged."""
    UNJUDGED: Mapping[Size, dict[str, int]] = {
        "100K": {"abstention": 24, "summarization": 4},
        "500K": {"abstention": 42, "knowledge_update": 1},
        "1M": {"abstention": 10, "preference_following": 1, "summarization": 1},
    }
    """Questions without evidence, by type."""
    CONVERSATIONS: Mapping[Size, tuple[int, ...]] = {
        "100K": (13, 15, 2, 3, 20, 17, 4, 11, 18, 6, 8, 10),
        "500K": (11, 32, 20, 1, 3, 5, 29, 31, 26, 21, 23, 27, 28, 6, 8, 9, 13, 15, 33, 16, 18),
        "1M": (3, 6, 8, 9, 31),
    }

    def recorded(size: Size) -> list[dict[str, Any]]:
        path = Path(os.environ["LCM_DATASETS_DIR"]) / "beam" / f"beam_{size}_dev.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    @pytest.fixture(scope="module", params=list(COUNTS))
    def size(request: pytest.FixtureRequest) -> Size:
        return request.param

    @pytest.fixture(scope="module")
    def dataset(size: Size) -> Dataset:
        return Beam(size=size).load()

    @pytest.fixture(scope="module")
    def records(size: Size) -> list[dict[str, Any]]:
        return recorded(size)

    def test_the_pinned_file_has_the_cards_counts(dataset: Dataset, size: Size) -> None:
        conversations, messages, sessions, markers, judged, judgements, single_shot = COUNTS[size]
        assert [t.workspace_id for t in dataset.transcripts] == [f"beam-{size}-{n}" for n in CONVERSATIONS[size]]
        assert sum(len(t.messages) for t in dataset.transcripts) == messages
        assert len({m.session_id for t in dataset.transcripts for m in t.messages}) == sessions
        assert dataset.notes == (f"{markers} messages end with a mark of the generation plan, which is cut off",)
        assert Counter(q.category for q in dataset.queries) == dict.fromkeys(TYPES, 2 * conversations)
        assert dataset.references.height == 2 * conversations
        found = set(dataset.qrels["query_id"])
        assert (len(found), dataset.qrels.height) == (judged, judgements)
        assert Counter(q.category for q in dataset.queries if q.query_id not in found) == UNJUDGED[size]
        assert sum(q.query_id in found for q in dataset.queries if q.category in SINGLE_SHOT) == single_shot

    def test_the_counts_hold_without_the_loader(records: list[dict[str, Any]], size: Size) -> None:
        conversations, messages, sessions, markers, judged, judgements, _ = COUNTS[size]
        batches = [batch for record in records for batch in record["chat"]]
        said = [message for batch in batches for group in batch["turns"] for message in group]
        assert (len(records), len(batches), len(said)) == (conversations, sessions, messages)
        assert sum("->->" in message["content"] for message in said) == markers
        assert [m for m in said if "time_anchor" in m] == [batch["turns"][0][0] for batch in batches]
        assert not [m for m in said if "->->" in m["content"] and m["role"] != "user"]
        cited = [
            set(re.findall(r"\d+", json.dumps(list(ids.values()) if isinstance(ids, dict) else ids)))
            for record in records
            for questions in record["probing_questions"].values()
            for ids in [question.get("source_chat_ids") for question in questions]
        ]
        assert (len([ids for ids in cited if ids]), sum(map(len, cited))) == (judged, judgements)

    def test_every_recorded_message_is_there_in_order(dataset: Dataset, records: list[dict[str, Any]]) -> None:
        for transcript, record in zip(dataset.transcripts, records, strict=True):
            said = [m for batch in record["chat"] for group in batch["turns"] for m in group]
            assert [rebuild(message) for message in transcript.messages] == said
            assert [m["id"] for m in said] == list(range(len(said)))
            assert not [m for m in transcript.messages if "->->" in m.content or not m.content.strip()]

    def test_days_never_run_backwards_and_questions_come_last(dataset: Dataset) -> None:
        for transcript in dataset.transcripts:
            days = [m.created_at for m in transcript.messages if m.created_at]
            assert len(days) == len(transcript.messages)
            assert days == sorted(days)
            asked = {q.asked_at for q in dataset.queries if q.workspace_id == transcript.workspace_id}
            assert asked == {days[-1]}

    def test_batches_have_46_to_238_messages() -> None:
        found = [sum(map(len, batch["turns"])) for size in COUNTS for r in recorded(size) for batch in r["chat"]]
        assert (min(found), max(found)) == (46, 238)

    def test_eight_marks_of_500k_go_on_in_prose() -> None:
        said = [m["content"] for r in recorded("500K") for b in r["chat"] for g in b["turns"] for m in g]
        marks = [text.partition("->->")[2] for text in said if "->->" in text]
        assert sum(len(mark) > len(" 12,34, 56") for mark in marks) == 8

    def test_about_a_quarter_of_the_evidence_is_said_by_the_assistant(dataset: Dataset) -> None:
        role = {m.message_id: m.role for t in dataset.transcripts for m in t.messages}
        by_assistant = sum(role[message_id] == "assistant" for message_id in dataset.qrels["message_id"])
        assert 0.2 < by_assistant / dataset.qrels.height < 0.25
