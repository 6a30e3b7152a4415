"""LMEB: the loader's rules on a small task."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from eval.dataset.lmeb import Lmeb
from eval.replay.workspace_replay import growth
from lcm.errors import DatasetError
from tests.eval.dataset.evidence import evidence
from tests.eval.dataset.refusals import misread
from tests.support.small_lmeb import CANDIDATES, CORPUS, QRELS, QUERIES, write_documents, write_subset, write_task


@pytest.fixture
def small(tmp_path: Path) -> str:
    write_task(tmp_path)
    return str(tmp_path)


def test_a_scene_is_a_workspace_and_holds_its_candidates_in_order(small: str) -> None:
    dataset = Lmeb(small).load()
    assert {t.workspace_id: [m.content for m in t.messages] for t in dataset.transcripts} == {
        "scene_0": [
            "Session 1, Turn 1 Ada: I keep bees.",
            "Session 1, Turn 2 Bo: How many hives?",
            "Ada: Five.",
            "Both Nobody asks.",
        ],
        "scene_1": ["Both Nobody asks.", "Session 1, Turn 1 Cy: I row."],
    }
    sessions = [m.session_id for m in dataset.transcripts[0].messages]
    assert [sessions.index(one) for one in sessions] == [0, 0, 2, 3]
    assert len({m.message_id for t in dataset.transcripts for m in t.messages}) == 5


def test_queries_are_asked_of_the_scene_that_their_id_begins_with(small: str) -> None:
    dataset = Lmeb(small).load()
    assert [(q.query_id, q.text, q.workspace_id, q.category) for q in dataset.queries] == [
        ("single_hop/scene_0_q_0", "How many hives?", "scene_0", "single_hop"),
        ("single_hop/scene_1_q_0", "What does Cy do?", "scene_1", "single_hop"),
        ("temporal/scene_0_q_0", "Since when?", "scene_0", "temporal"),
    ]
    assert {name: set(words) for name, words in evidence(dataset, by="query_id").items()} == {
        "single_hop/scene_0_q_0": {"Ada: Five.", "Session 1, Turn 2 Bo: How many hives?"},
        "single_hop/scene_1_q_0": {"Session 1, Turn 1 Cy: I row."},
        "temporal/scene_0_q_0": {"Session 1, Turn 1 Ada: I keep bees."},
    }
    assert dataset.protocol == "task=LoCoMo subsets=single_hop,temporal unit=document"
    heard = [len(t.messages) for ts, _ in growth(dataset.transcripts, dataset.queries) for t, _ in ts]
    assert heard == [4, 2]


def test_subsets_are_taken_by_name(small: str) -> None:
    dataset = Lmeb(small, subsets=["temporal"]).load()
    assert (dataset.workspaces, len(dataset.queries)) == (["scene_0"], 1)
    for settings, words in (
        ({"subsets": ["hop"]}, "holds no subset 'hop'; choose from: single_hop, temporal"),
        ({"task": "REALTALK"}, "holds 0 folders of task 'REALTALK'; there is LoCoMo"),
    ):
        with pytest.raises(DatasetError) as refused:
            Lmeb(small, **settings).load()
        assert words in str(refused.value)
    with pytest.raises(ValueError, match="subsets must be null or a list of folders"):
        Lmeb(subsets=[])


def test_subsets_with_documents_of_their_own_share_no_scene(tmp_path: Path) -> None:
    for subset in QUERIES:
        documents = [document | {"text": f"{subset}: {document['text']}"} for document in CORPUS]
        write_documents(tmp_path / "ConvoMem" / subset, documents, CANDIDATES)
        write_subset(tmp_path / "ConvoMem" / subset, QUERIES[subset], QRELS[subset])
    dataset = Lmeb(str(tmp_path), task="ConvoMem").load()
    assert dataset.workspaces == ["single_hop/scene_0", "single_hop/scene_1", "temporal/scene_0"]
    for query_id, found in evidence(dataset, by="query_id").items():
        assert found
        assert all(f"{query_id.partition('/')[0]}: " in words for words in found)


def test_judgements_of_what_is_no_candidate_are_counted_and_without_candidates_all_is_one_scene(small: str) -> None:
    home = Path(small) / "Dialogue" / "LoCoMo"
    whole, one = Lmeb(small).load(), Lmeb(str(home)).load()
    assert (one.transcripts, one.queries, one.digest) == (whole.transcripts, whole.queries, whole.digest)
    judged = home / "temporal" / "qrels.tsv"
    judged.write_text(judged.read_text() + "scene_0_q_0\tscene_1_session_1_turn_1\t1\n")
    dataset = Lmeb(small).load()
    assert len(dataset.qrels) == 4
    assert "1 judgements name no candidate of their scene and are left out" in dataset.notes
    (home / "candidates.jsonl").unlink()
    dataset = Lmeb(small).load()
    assert dataset.workspaces == ["corpus"]
    assert [len(t.messages) for t in dataset.transcripts] == [5]
    assert len(dataset.qrels) == 5


def test_no_digest_of_lmeb_is_known(small: str) -> None:
    assert "6 of 6 files are of no known release" in Lmeb(small).load().notes[0]
    with pytest.raises(DatasetError, match="is not the pinned file"):
        Lmeb(small, pinned=True).load()


def write(file: str, content: str | list[dict[str, object]]) -> Callable[[Path], object]:
    """Give what replaces a file of the task by text or by records."""
    return lambda home: (home / file).write_text(
        content if isinstance(content, str) else "".join(f"{json.dumps(record)}\n" for record in content)
    )


def scene(*candidates: object) -> dict[str, object]:
    return {"scene_id": "scene_0", "candidate_doc_ids": list(candidates)}


HOSTILE: dict[str, Callable[[Path], object]] = {
    "corpus.jsonl is missing": lambda home: (home / "corpus.jsonl").unlink(),
    "temporal/qrels.tsv is missing": lambda home: (home / "temporal" / "qrels.tsv").unlink(),
    "temporal/qrels.tsv: line 1: must be query, document and a whole number with tabs between": write(
        "temporal/qrels.tsv", "query-id\tcorpus-id\tscore\n"
    ),
    "temporal/qrels.tsv: line 1: must be": write("temporal/qrels.tsv", "scene_0_q_0 shared 1\n"),
    "candidates.jsonl: record 1: 'candidate_doc_ids' names 'scene_0_session_1_turn_2', which is no document": write(
        "corpus.jsonl", [CORPUS[0], {"id": "x"}]
    ),
    "LoCoMo/corpus.jsonl: record 6: 'id' 'scene_0_session_1_turn_1' stands twice": write(
        "corpus.jsonl", [*CORPUS, CORPUS[0]]
    ),
    "LoCoMo/corpus.jsonl: record 1: 'text' is missing": write("corpus.jsonl", [{"id": one["id"]} for one in CORPUS]),
    "scene 'scene_0' stands twice": write("candidates.jsonl", [scene("shared")] * 2),
    "candidates.jsonl names no scene 'scene_1', and queries ask about it": write("candidates.jsonl", [scene()]),
    "record 1: 'candidate_doc_ids[0]' must be text, got 1": write("candidates.jsonl", [scene(1)]),
    "temporal/queries.jsonl: record 2: 'id' 'scene_0_q_0' stands twice": write(
        "temporal/queries.jsonl", [{"id": "scene_0_q_0", "text": "?"}] * 2
    ),
    "temporal/queries.jsonl: holds no record": write("temporal/queries.jsonl", ""),
}


def test_hostile_shapes_are_refused_in_one_line(tmp_path: Path) -> None:
    wrong = []
    for number, (words, damage) in enumerate(HOSTILE.items()):
        damage(write_task(tmp_path / str(number)))
        wrong += misread(Lmeb(str(tmp_path / str(number))).load, words)
    assert wrong == []
