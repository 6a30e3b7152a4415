"""LoCoMo: counts of the pinned files, and the loader's rules on a small copy of the format."""

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval.dataset import locomo
from eval.dataset.locomo import Locomo
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.support.small_locomo import RECORD, write_small_locomo


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in LoCoMo's format whose digests are pinned."""
    return write_small_locomo(tmp_path, monkeypatch)


def evidence(loader: Locomo) -> dict[str, list[str]]:
    """Question -> the words of its evidence."""
    dataset = loader.load()
    words = {m.message_id: m.content for t in dataset.transcripts for m in t.messages}
    found: dict[str, list[str]] = {query.text: [] for query in dataset.queries}
    text = {query.query_id: query.text for query in dataset.queries}
    for query_id, message_id, _ in dataset.qrels.iter_rows():
        found[text[query_id]].append(words[message_id])
    return found


def test_turns_keep_order_speaker_session_and_time(small: str) -> None:
    (transcript,) = Locomo(small).load().transcripts
    assert [m.content for m in transcript.messages] == [
        "Look at my dog\n[picture: a dog by a wall]",
        "Lovely",
        "He ate a shoe",
    ]
    assert [m.role for m in transcript.messages] == ["user", "assistant", "user"]
    assert [m.author for m in transcript.messages] == ["Ada", "Bo", "Ada"]
    assert len({m.session_id for m in transcript.messages}) == 2
    assert transcript.messages[2].created_at == datetime(2023, 5, 10, 9, 5, tzinfo=UTC)
    assert {query.asked_at for query in Locomo(small).load().queries} == {datetime(2023, 5, 10, 9, 5, tzinfo=UTC)}


def test_every_turn_rebuilds_exactly(small: str) -> None:
    (transcript,) = Locomo(small).load().transcripts
    talk = RECORD["conversation"]
    assert [rebuild(message) for message in transcript.messages] == talk["session_1"] + talk["session_2"]


def test_captions_can_be_left_out(small: str) -> None:
    (transcript,) = Locomo(small, captions=False).load().transcripts
    assert transcript.messages[0].content == "Look at my dog"


def test_original_evidence_leaves_out_what_names_no_turn(small: str) -> None:
    found = evidence(Locomo(small))
    assert found["What did the dog eat?"] == ["He ate a shoe"]
    assert found["Both?"] == []
    assert found["Wrongly cited"] == ["Lovely"]
    assert Locomo(small).load().notes == ("2 evidence entries name no turn and are left out",)


def test_repaired_evidence_mends_spelling_and_wrong_citations_only(small: str) -> None:
    found = evidence(Locomo(small, evidence="repaired"))
    assert len(found["Both?"]) == 2
    assert found["Wrongly cited"] == ["He ate a shoe"]
    assert found["What did the dog eat?"] == ["He ate a shoe"]


def test_categories_choose_questions(small: str) -> None:
    assert [query.text for query in Locomo(small, categories=[1, 4]).load().queries] == [
        "What did the dog eat?",
        "Both?",
    ]


def test_protocols_have_different_digests(small: str) -> None:
    loaders = [Locomo(small), Locomo(small, evidence="repaired"), Locomo(small, categories=[1])]
    assert len({loader.load().digest for loader in loaders}) == 3
    assert Locomo(small).load().digest == Locomo(small).load().digest


def test_another_file_is_refused_with_both_digests(small: str) -> None:
    path = Path(small) / locomo._CONVERSATIONS.path
    path.write_text(path.read_text() + " ")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DatasetError) as caught:
        Locomo(small).load()
    assert found in str(caught.value)
    assert locomo._CONVERSATIONS.sha256 in str(caught.value)


def test_a_missing_folder_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    with pytest.raises(DatasetError, match="set LCM_DATASETS_DIR"):
        Locomo().load()
    monkeypatch.setenv("LCM_DATASETS_DIR", str(tmp_path))
    with pytest.raises(DatasetError, match="which is not a folder"):
        Locomo().load()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evidence": "fixed"}, "evidence must be one of: original, repaired"),
        ({"categories": [6]}, "categories must be"),
    ],
)
def test_a_bad_setting_is_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Locomo(**settings)


if os.environ.get("LCM_DATASETS_DIR"):

    def test_the_pinned_files_have_the_published_counts() -> None:
        dataset = Locomo().load()
        assert len(dataset.transcripts) == 6
        assert [len(t.messages) for t in dataset.transcripts] == [419, 369, 663, 629, 680, 675]
        assert len(dataset.queries) == 1157
        judged = set(dataset.qrels["query_id"])
        # 885 questions of categories 1-4: two have no evidence, one only a misspelt id.
        assert len([q for q in dataset.queries if q.query_id in judged and q.category != "adversarial"]) == 882

    def test_repairing_the_pinned_evidence_leaves_only_what_was_never_judged() -> None:
        dataset = Locomo(evidence="repaired").load()
        judged = set(dataset.qrels["query_id"])
        assert sorted(q.query_id for q in dataset.queries if q.query_id not in judged) == ["conv-26/30", "conv-26/46"]
