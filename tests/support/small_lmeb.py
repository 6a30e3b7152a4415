"""LMEB's layout, written small or from another dataset."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from eval.dataset.lmeb import Lmeb
from tests.support.releases import know

CORPUS = (
    {"id": "scene_0_session_1_turn_1", "text": "Ada: I keep bees.", "title": "Session 1, Turn 1"},
    {"id": "scene_0_session_1_turn_2", "text": "Bo: How many hives?", "title": "Session 1, Turn 2"},
    {"id": "scene_0_session_2_turn_1", "text": "Ada: Five.", "title": ""},
    {"id": "scene_1_session_1_turn_1", "text": "Cy: I row.", "title": "Session 1, Turn 1"},
    {"id": "shared", "text": "Nobody asks.", "title": "Both"},
)
CANDIDATES = {"scene_0": [one["id"] for one in CORPUS[:3]] + ["shared"], "scene_1": ["shared", CORPUS[3]["id"]]}
QUERIES = {
    "single_hop": {"scene_0_q_0": "How many hives?", "scene_1_q_0": "What does Cy do?"},
    "temporal": {"scene_0_q_0": "Since when?"},
}
QRELS = {
    "single_hop": [
        ("scene_0_q_0", "scene_0_session_2_turn_1", 1),
        ("scene_0_q_0", "scene_0_session_1_turn_2", 1),
        ("scene_1_q_0", "scene_1_session_1_turn_1", 1),
    ],
    "temporal": [("scene_0_q_0", "scene_0_session_1_turn_1", 1), ("scene_0_q_0", "shared", 0)],
}


def write_lines(path: Path, records: Iterable[object]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_documents(place: Path, corpus: Iterable[object], candidates: Mapping[str, Sequence[str]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    write_lines(place / "corpus.jsonl", corpus)
    write_lines(
        place / "candidates.jsonl", [{"scene_id": s, "candidate_doc_ids": list(ids)} for s, ids in candidates.items()]
    )


def write_subset(place: Path, queries: Mapping[str, str], qrels: Iterable[tuple[str, str, int]]) -> None:
    place.mkdir(parents=True, exist_ok=True)
    write_lines(place / "queries.jsonl", [{"id": name, "text": text} for name, text in queries.items()])
    (place / "qrels.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in qrels))


def write_task(directory: Path, name: str = "LoCoMo") -> Path:
    """A task of two subsets, which share documents and candidates."""
    home = directory / "Dialogue" / name
    write_documents(home, CORPUS, CANDIDATES)
    for subset, queries in QUERIES.items():
        write_subset(home / subset, queries, QRELS[subset])
    return home


def write_small_lmeb(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two tasks, whose files are known ones; returns the folder as `dataset.directory` wants it."""
    write_task(directory)
    other = write_task(directory, "Other")
    write_subset(other / "single_hop", {"scene_1_q_9": "Who rows?"}, [("scene_1_q_9", "scene_1_session_1_turn_1", 1)])
    return know(monkeypatch, Lmeb, directory)
