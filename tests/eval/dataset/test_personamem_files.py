"""PersonaMem as it is published: a question hears its context up to where it is asked."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.personamem import Personamem
from eval.replay.workspace_replay import growth
from lcm.errors import DatasetError
from lcm.transcript.parts import rebuild
from tests.eval.dataset.refusals import misread
from tests.eval.dataset.test_personamem import write_small_personamem

CONTEXTS: dict[str, list[dict[str, Any]]] = {
    "ada": [
        {"role": "system", "content": "Current user persona: Ada"},
        {"role": "user", "content": "User: I sail."},
        {"role": "assistant", "content": "Assistant: Where?"},
        {"role": "system", "content": "Current user persona: Ada"},
        {"role": "user", "content": "Plain words."},
    ],
    "bo": [{"role": "system", "content": "Current user persona: Bo"}, {"role": "user", "content": "User: Hello"}],
}
QUESTION = {
    "persona_id": "7",
    "question_id": "q1",
    "question_type": "suggest_new_ideas",
    "topic": "sport",
    "user_question_or_message": "What next,\nthen?",
    "correct_answer": "(b)",
    "all_options": repr(["(a) A car.", "(b) It's a (red) boat.", "(c) A bus,\nperhaps.", "(d) None"]),
    "shared_context_id": "ada",
    "end_index_in_shared_context": "3",
}


def write_published(
    directory: Path, questions: Sequence[Mapping[str, Any]], contexts: Mapping[str, Any] = CONTEXTS, length: str = "32k"
) -> Path:
    """The two files as on Hugging Face."""
    written = io.StringIO()
    rows = csv.DictWriter(written, fieldnames=list(QUESTION))
    rows.writeheader()
    rows.writerows(questions)
    path = directory / f"questions_{length}.csv"
    path.write_text(written.getvalue(), newline="", encoding="utf-8")
    lines = "".join(json.dumps({context: turns}) + "\n" for context, turns in contexts.items())
    (directory / f"shared_contexts_{length}.jsonl").write_text(lines)
    return path


def question(**changes: object) -> dict[str, Any]:
    return QUESTION | changes


def test_options_are_a_python_list_in_text(tmp_path: Path) -> None:
    write_published(tmp_path, [QUESTION])
    dataset = Personamem(str(tmp_path)).load()
    assert dataset.options.rows() == [
        ("q1", "a", "A car.", False),
        ("q1", "b", "It's a (red) boat.", True),
        ("q1", "c", "A bus,\nperhaps.", False),
        ("q1", "d", "None", False),
    ]
    assert [(query.query_id, query.text, query.category, query.workspace_id) for query in dataset.queries] == [
        ("q1", "What next,\nthen?", "suggest_new_ideas", "ada")
    ]
    assert dataset.protocol == "options=4 context=until_asked"


def test_a_question_hears_the_messages_before_its_index_and_no_more(tmp_path: Path) -> None:
    asked = [question(question_id=f"q{end}", end_index_in_shared_context=end) for end in (4, 1, 9, 5)]
    write_published(tmp_path, asked)
    dataset = Personamem(str(tmp_path)).load()
    heard: dict[str, int] = {}
    for transcripts, queries in growth(dataset.transcripts, dataset.queries):
        for transcript, _ in transcripts:
            heard[transcript.workspace_id] = len(transcript.messages)
        for query in queries:
            heard[query.query_id] = heard["ada"]
    assert {name: heard[name] for name in ("q1", "q4", "q5", "q9")} == {"q1": 1, "q4": 4, "q5": 5, "q9": 5}
    assert "1 questions are asked after more messages than their context has" in dataset.notes


def test_lengths_lie_side_by_side_and_one_is_named(tmp_path: Path) -> None:
    write_published(tmp_path, [QUESTION])
    write_published(tmp_path, [question(shared_context_id="bo")], {"bo": CONTEXTS["bo"]}, "128k")
    with pytest.raises(DatasetError, match=r"holds 2 files of personamem: name one, dataset\.file=questions_128k\.csv"):
        Personamem(str(tmp_path)).load()
    assert Personamem(str(tmp_path), file="questions_128k.csv").load().workspaces == ["bo"]
    assert Personamem(str(tmp_path), file="questions_32k.csv").load().workspaces == ["ada", "bo"]
    (tmp_path / "shared_contexts_32k.jsonl").unlink()
    with pytest.raises(DatasetError, match=r"shared_contexts_32k\.jsonl is missing: the contexts lie beside"):
        Personamem(str(tmp_path), file="questions_32k.csv").load()


QUESTION_FAULTS = (
    (question(all_options="['(a) x'"), "record 1: 'all_options' is no Python list"),
    (question(all_options="open('x')"), "record 1: 'all_options' is no Python list"),
    (question(all_options="['(a) x', 4]"), "'all_options[1]' must be text, got 4"),
    (question(all_options="['x', '(b) y']"), "'all_options' must hold options as '(a) words', each letter once"),
    (question(all_options="['(b) x', '(b) y']"), "each letter once"),
    (question(correct_answer="(e)"), "must hold the correct option (e), got the letters a, b, c, d"),
    (question(correct_answer="b"), "'correct_answer' must be a letter as (c), got 'b'"),
    (question(end_index_in_shared_context="0"), "must be a whole number >= 1, got '0'"),
    (question(end_index_in_shared_context="3.0"), "must be a whole number >= 1, got '3.0'"),
    (question(shared_context_id="cy"), "'shared_context_id' 'cy' is no context"),
)
CONTEXT_FAULTS = (
    ({"ada": [{"role": "user"}]}, "record 1: ada[0]: 'content' is missing"),
    ({"ada": [{"role": "bot", "content": "x"}]}, "ada[0]: 'role' must be one of system, user, assistant, got 'bot'"),
    ({"ada": ["x"]}, "record 1: 'ada[0]' must be an object, got 'x'"),
    ({}, "shared_contexts_32k.jsonl: holds no record"),
)


def test_hostile_shapes_are_refused_in_one_line(tmp_path: Path) -> None:
    cases = [([asked], CONTEXTS, words, "questions_32k.csv: record 1") for asked, words in QUESTION_FAULTS]
    cases += [([QUESTION], contexts, words, "shared_contexts_32k.jsonl") for contexts, words in CONTEXT_FAULTS]
    cases += [([QUESTION, QUESTION], CONTEXTS, "'question_id' 'q1' stands twice", "questions_32k.csv: record 2")]
    cases += [([], CONTEXTS, "holds no record", "questions_32k.csv")]
    wrong = []
    for asked, contexts, *words in cases:
        write_published(tmp_path, asked, contexts)
        wrong += misread(Personamem(str(tmp_path)).load, *words)
    assert wrong == []


def test_messages_are_those_of_the_development_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There a turn of the system begins a session, and a marker that is repeated is cut off."""
    for form in ("developed", "published"):
        (tmp_path / form).mkdir()
    part = Personamem(write_small_personamem(tmp_path / "developed", monkeypatch)).load()
    contexts = {
        t.workspace_id: [{"role": m.role, "content": rebuild(m)["text"]} for m in t.messages] for t in part.transcripts
    }
    write_published(tmp_path / "published", [QUESTION], contexts)
    published = Personamem(str(tmp_path / "published")).load()
    ours, theirs = (
        [(t.workspace_id, m.message_id, m.session_id, m.role, m.content) for t in one.transcripts for m in t.messages]
        for one in (published, part)
    )
    assert ours == theirs
    for transcript in published.transcripts:
        assert [rebuild(message) for message in transcript.messages] == contexts[transcript.workspace_id]
