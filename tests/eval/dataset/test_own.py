"""Own sessions and questions: what is asked of which workspace, when, and with which evidence."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eval.dataset.own import Own
from eval.dataset.sample import Sample, bundled_directory
from lcm.errors import DatasetError
from tests.conftest import ROOT

OWN = ROOT / "docs" / "examples" / "own"


def sample(**fields: object) -> Own:
    paths = [str(bundled_directory() / "transcripts")]
    return Own(paths, questions=str(bundled_directory() / "queries.jsonl"), workspace="file", **fields)  # type: ignore[arg-type]


def test_the_sample_as_own_data_is_the_sample() -> None:
    """Its queries and judgements, by the words of the messages: the ids of the sample are opaque."""
    found, known = sample().load(), Sample().load()
    words = [
        {message.message_id: message.content for one in dataset.transcripts for message in one.messages}
        for dataset in (found, known)
    ]
    assert found.queries == known.queries
    assert [(query, words[0][message]) for query, message, _ in found.qrels.rows()] == [
        (query, words[1][message]) for query, message, _ in known.qrels.rows()
    ]


def test_a_question_without_an_instant_is_asked_when_all_of_its_workspace_was_said() -> None:
    with pytest.raises(DatasetError, match=r"dataset.questions names no file: .* `lcm questions make PATHS"):
        Own([str(OWN / "sessions")]).load()
    dataset = Own([str(OWN / "sessions")], questions=str(OWN / "questions.jsonl"), workspace="folder", similarity=0.8)
    with pytest.raises(DatasetError, match=r"questions.jsonl:20: an unanswerable question must name its workspace"):
        dataset.load()
    whole = Own([str(OWN / "sessions")], questions=str(OWN / "questions.jsonl")).load()
    last = max(message.created_at for one in whole.transcripts for message in one.messages if message.created_at)
    assert {query.asked_at for query in whole.queries} == {last}
    assert last > datetime(2026, 3, 4, 10, tzinfo=UTC)


def test_the_digest_is_that_of_files_questions_and_what_they_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"role": "user", "content": "We sail at dawn."}))
    path = tmp_path / "questions.csv"
    digests = []
    for row in ('"Where?",dawn', '"Where?",dawn', '"When?",dawn'):
        path.write_text(f"question,evidence\n{row}\n")
        digests.append(Own([str(tmp_path / "a.jsonl")], questions=str(path)).load().digest)
    assert digests[0] == digests[1] != digests[2]


def test_generated_questions_are_told_and_what_is_unused_is_a_note(tmp_path: Path) -> None:
    said = {"role": "user", "content": "We sail at dawn, with the ebb.", "timestamp": "2026-01-05T09:00:00Z"}
    (tmp_path / "a.jsonl").write_text(json.dumps(said))
    path = tmp_path / "questions.jsonl"
    lines = [
        {"question": "When to sail, Ann?", "evidence": "dawn", "generated": "known_item", "difficulty": 3},
        {"question": "How?", "evidence": "we sail at dawn with the ebb"},
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    dataset = Own([str(tmp_path / "a.jsonl")], questions=str(path)).load()
    assert dataset.generated == "known_item; 1 asked by people"
    assert dataset.generated_by_query == {dataset.queries[0].query_id: "known_item"}
    assert dataset.notes[0].startswith("questions: questions.jsonl, sha256 ")
    assert dataset.notes[1].startswith("1 questions quote words that are not the same")
    assert dataset.notes[2] == "keys of questions.jsonl that say nothing here: difficulty"
    assert dataset.notes[3] == "questions share 0.50 of their content words with their evidence"


def test_workspaces_are_named_by_the_shortest_ends_that_tell_them_apart(tmp_path: Path) -> None:
    for folder in ("one/notes", "two/notes"):
        (tmp_path / folder).mkdir(parents=True)
        for name in "ab":
            told = {"conversation_id": f"{folder}/{name}", "messages": [{"role": "user", "content": name}]}
            (tmp_path / folder / f"{name}.jsonl").write_text(json.dumps(told))
    names = {
        rule: [file.workspace_id for file in Own([str(tmp_path)], workspace=rule).sessions().files]
        for rule in ("all", "folder", "file")
    }
    assert names == {
        "all": ["own"] * 4,
        "folder": ["one/notes", "one/notes", "two/notes", "two/notes"],
        "file": ["one/notes/a", "one/notes/b", "two/notes/a", "two/notes/b"],
    }
