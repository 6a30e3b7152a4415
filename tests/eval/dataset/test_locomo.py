"""LoCoMo: the loader's rules on a small copy of the format, and the digests of the pinned files."""

import hashlib
import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.card import dataset_digest
from eval.dataset.files import Record
from eval.dataset.locomo import TIME, Locomo, ledger_text, mended, read_ledger
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.eval.dataset.evidence import evidence
from tests.eval.dataset.refusals import misread
from tests.support.small_locomo import AUDIT, AUDIT_FILE, RECORD, REFINED, write_small_locomo


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder in LoCoMo's format whose digests are pinned."""
    return write_small_locomo(tmp_path, monkeypatch)


def test_turns_keep_order_speaker_session_and_time_and_rebuild_exactly(small: str) -> None:
    dataset = Locomo(small).load()
    (transcript,) = dataset.transcripts
    first, last = datetime(2023, 5, 8, 13, 56, tzinfo=UTC), datetime(2023, 5, 10, 9, 5, tzinfo=UTC)
    assert [(m.author, m.role, m.content, m.created_at) for m in transcript.messages] == [
        ("Ada", "user", "Look at my dog\n[picture: a dog by a wall]", first),
        ("Bo", "assistant", "Lovely", first),
        ("Ada", "user", "He ate a shoe", last),
    ]
    sessions = [m.session_id for m in transcript.messages]
    assert [sessions.index(session) for session in sessions] == [0, 0, 2]
    assert {query.asked_at for query in dataset.queries} == {last}
    talk = RECORD["conversation"]
    assert [rebuild(message) for message in transcript.messages] == talk["session_1"] + talk["session_2"]
    assert Locomo(small, captions=False).load().transcripts[0].messages[0].content == "Look at my dog"


@pytest.mark.parametrize(("clock", "hour"), [("12:05 am", 0), ("12:05 pm", 12), ("1:05 am", 1), ("11:05 pm", 23)])
def test_the_clock_has_twelve_hours(clock: str, hour: int) -> None:
    assert Record("", {}).instant("", f"{clock} on 8 May, 2023", TIME, "") == datetime(2023, 5, 8, hour, 5, tzinfo=UTC)


def test_sessions_come_in_the_order_of_their_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk: dict[str, Any] = {"speaker_a": "Ada", "speaker_b": "Bo"}
    for n in (10, 2, 1, 11):
        talk[f"session_{n}_date_time"] = f"9:05 am on {n} May, 2023"
        talk[f"session_{n}"] = [{"speaker": "Ada", "dia_id": f"D{n}:1", "text": f"said in session {n}"}]
    dataset = Locomo(write_small_locomo(tmp_path, monkeypatch, RECORD | {"conversation": talk})).load()
    (transcript,) = dataset.transcripts
    assert [message.content for message in transcript.messages] == [f"said in session {n}" for n in (1, 2, 10, 11)]
    assert {query.asked_at for query in dataset.queries} == {datetime(2023, 5, 11, 9, 5, tzinfo=UTC)}


def test_categories_are_named_by_their_number_and_choose_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [{"question": str(n), "category": n, "evidence": ["D1:1"]} for n in (5, 4, 3, 2, 1)]
    folder = write_small_locomo(tmp_path, monkeypatch, RECORD | {"qa": questions})
    whole, answerable = Locomo(folder).load(), Locomo(folder, categories=[1, 2, 3, 4]).load()
    names = {"5": "adversarial", "4": "single_hop", "3": "open_domain", "2": "temporal", "1": "multi_hop"}
    assert {query.text: query.category for query in whole.queries} == names
    assert {name: sorted(members) for name, members in whole.groups.items()} == {
        "categories 1-4": ["multi_hop", "open_domain", "single_hop", "temporal"]
    }
    assert [query.text for query in answerable.queries] == ["4", "3", "2", "1"]
    assert answerable.groups == {}


def test_evidence_named_twice_is_one_judgement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question = {"question": "Twice?", "category": 1, "evidence": ["D2:1", "D1:1", "D2:1"]}
    loader = Locomo(write_small_locomo(tmp_path, monkeypatch, RECORD | {"qa": [question]}))
    assert evidence(loader.load()) == {"Twice?": ["He ate a shoe", "Look at my dog\n[picture: a dog by a wall]"]}
    assert loader.load().qrels["relevance"].to_list() == [1, 1]


def test_original_evidence_leaves_out_what_names_no_turn_and_repaired_evidence_mends_it(small: str) -> None:
    assert evidence(Locomo(small).load()) == {
        "What did the dog eat?": ["He ate a shoe"],
        "Both?": [],
        "Which cat?": ["Look at my dog\n[picture: a dog by a wall]"],
        "Wrongly cited": ["Lovely"],
    }
    assert Locomo(small).load().notes == ("2 evidence entries name no turn and are left out",)
    repaired = evidence(Locomo(small, evidence="repaired").load())
    assert len(repaired["Both?"]) == 2
    assert repaired["Wrongly cited"] == repaired["What did the dog eat?"] == ["He ate a shoe"]


def test_both_evidences_are_judged_beside_each_other(small: str) -> None:
    both, original, repaired = (Locomo(small, evidence=one).load() for one in ("both", "original", "repaired"))
    assert both.qrels.equals(original.qrels)
    assert both.repaired_qrels is not None
    assert both.repaired_qrels.equals(repaired.qrels)
    assert (original.repaired_qrels, repaired.repaired_qrels) == (None, None)
    version = hashlib.sha256((Path(small) / AUDIT_FILE).read_bytes()).hexdigest()[:12]
    assert both.notes == (
        "2 evidence entries name no turn and are left out",
        f"2 of 4 judged questions have other evidence than recorded (ledger: audit sha256 {version}, spelling 1)",
        "1 of 4 judged questions stay in doubt; the evidence of 75.0% is undisputed",
    )


def test_evidence_goes_by_a_ledger_where_one_is_there(small: str) -> None:
    audited = Locomo(small, evidence="repaired")
    ledger = audited.evidence_ledger()
    by_audit = audited.load()
    path = Path(small) / "ledger.jsonl"
    path.write_text(ledger_text(ledger.corrections))
    assert read_ledger(path) == ledger
    assert Locomo(small, evidence="repaired").load().qrels.equals(by_audit.qrels)
    other = replace(ledger.corrections[-1], becomes=("D1:1",), in_doubt=True)
    path.rename(Path(small) / "first.jsonl").write_text(ledger_text([other]))
    assert evidence(Locomo(small, evidence="repaired").load())["Wrongly cited"] == [
        "Look at my dog\n[picture: a dog by a wall]"
    ]
    path.write_text(ledger_text(ledger.corrections))
    with pytest.raises(DatasetError, match=r"name a ledger, dataset.ledger=FILE"):
        Locomo(small, evidence="repaired").load()
    assert Locomo(small, evidence="repaired", ledger="ledger.jsonl").load().qrels.equals(by_audit.qrels)
    assert Locomo(small, evidence="repaired", ledger="first.jsonl").load().digest != by_audit.digest


def test_misspelt_turn_ids_are_mended_and_what_names_no_turn_is_left_out() -> None:
    turns = {"D1:1", "D8:6", "D9:17", "D11:26", "D30:5"}
    mends = {
        ("D1:1", "D9:17"): ["D1:1", "D9:17"],
        ("D8:6; D9:17",): ["D8:6", "D9:17"],
        ("D8:6 D9:17 D30:05",): ["D8:6", "D9:17", "D30:5"],
        ("D1:1", "D", "D:11:26"): ["D1:1", "D11:26"],
        ("D4:36",): [],
        (): [],
    }
    assert {recorded: mended(recorded, turns) for recorded in mends} == mends


def test_a_finding_without_better_evidence_leaves_the_recorded_in_doubt(small: str) -> None:
    findings = [
        {"question_id": "locomo_0_qa0", "error_type": "WRONG_CITATION", "correct_evidence": ["D1:2"]},
        {"sample_id": "conv-1", "qa_index": 0, "error_type": "WRONG_CITATION", "correct_evidence": None},
        {"sample_id": "conv-1", "qa_index": 2, "error_type": "NEW_KIND"},
    ]
    (Path(small) / AUDIT_FILE).write_text(json.dumps(findings))
    found = {one.question_id: one for one in Locomo(small).evidence_ledger().corrections}
    assert found["conv-1/0"].becomes == found["conv-1/0"].was == ("D2:1",)
    assert [found[name].in_doubt for name in ("conv-1/0", "conv-1/2")] == [True, True]
    assert found["conv-1/2"].reason == "new_kind"
    findings[0]["question_id"] = "locomo_12_qa0"
    (Path(small) / AUDIT_FILE).write_text(json.dumps(findings))
    with pytest.raises(DatasetError, match=r"'question_id' must be locomo_CONVERSATION_qaINDEX"):
        Locomo(small).evidence_ledger()


def test_without_corrections_repaired_evidence_is_refused(small: str) -> None:
    (Path(small) / AUDIT_FILE).unlink()
    with pytest.raises(DatasetError, match=r"corrections of evidence are asked for, and .* holds none"):
        Locomo(small, evidence="both").load()
    assert len(Locomo(small).load().queries) == 4


def question(**changes: object) -> dict[str, object]:
    return {"qa": [{"question": "?", "category": 1, "evidence": []} | changes]}


DAMAGES: dict[str, dict[str, object]] = {
    "record 1: 'qa' must be a list, got null": {"qa": None},
    "'category' must be 1 to 5, got 7": question(category=7),
    "'evidence[0]' must be text, got 3": question(evidence=[3]),
    "'answer' must be text, got {": question(answer={"a": 1}),
    "'answer[1]' must be text, got True": question(answer=["a", True]),
    "'conversation' holds no turn": {"conversation": {"speaker_a": "A", "dia_id": 1}},
    "conversation: 'session_1_date_time' is missing": {
        "conversation": {"speaker_a": "A", "session_1": [{"dia_id": "D1:1", "speaker": "A", "text": "a"}]}
    },
    "'session_1_date_time' must be a time such as '1:56 pm on 8 May, 2023', got 'yesterday'": {
        "conversation": RECORD["conversation"] | {"session_1_date_time": "yesterday"}
    },
}


def test_damage_is_reported_by_its_place(tmp_path: Path) -> None:
    wrong = []
    for told, changes in DAMAGES.items():
        (tmp_path / "locomo10.json").write_text(json.dumps([RECORD | changes]))
        wrong += misread(Locomo(str(tmp_path)).load, "locomo10.json: record 1", told)
    assert wrong == []


def test_a_bad_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="evidence must be one of: both, original, repaired"):
        Locomo(evidence="fixed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="categories must be"):
        Locomo(categories=[6])


if os.environ.get("LCM_DATASETS_DIR"):

    def test_the_development_part_keeps_its_digests_and_says_nothing_of_its_release() -> None:
        original, repaired = Locomo(pinned=True).load(), Locomo(evidence="repaired", pinned=True).load()
        (development,) = [one for one in Locomo.card.releases if one.name == "development"]
        assert original.digest == dataset_digest(development.files[:1], original.protocol)
        assert repaired.digest == dataset_digest(development.files, repaired.protocol)
        assert original.notes == ("4 evidence entries name no turn and are left out",)
        ledger = "ledger: audit sha256 774d8a786b28, spelling 1"
        assert repaired.notes == (
            f"39 of 1155 judged questions have other evidence than recorded ({ledger})",
            "58 of 1155 judged questions stay in doubt; the evidence of 95.0% is undisputed",
        )


def test_of_refined_questions_the_audit_knows_none(tmp_path: Path) -> None:
    (tmp_path / "locomo_refined.json").write_text(json.dumps([REFINED]))
    asked = Locomo(str(tmp_path)).load()
    assert [(query.query_id, query.category) for query in asked.queries] == [
        ("conv-1/0", "single_hop"), ("conv-1/1", "temporal"),
    ]  # fmt: skip
    assert evidence(asked) == {query.text: ["He ate a shoe"] for query in asked.queries}
    (tmp_path / AUDIT_FILE).write_text(json.dumps(AUDIT))
    with pytest.raises(DatasetError, match=r"numbers the questions of locomo10\.json.*dataset\.evidence=original"):
        Locomo(str(tmp_path), evidence="repaired").load()
