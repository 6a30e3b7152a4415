"""The laws of `DatasetLoader`, over every YAML of its group whose files are here."""

import os

import pytest

from eval.datasets.dataset import Dataset
from lcm.memory import System
from pipelines import configuration
from tests.workspaces import system

CHOICES = [
    choice for choice in configuration.groups()["dataset"] if choice == "sample" or os.environ.get("LCM_DATASETS_DIR")
]


def load(choice: str) -> Dataset:
    return configuration.build(configuration.composed([f"dataset={choice}"]), "dataset").load()


@pytest.fixture(scope="module", params=CHOICES)
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return load(request.param)


@pytest.mark.parametrize("choice", CHOICES)
def test_loading_twice_gives_equal_datasets(choice: str) -> None:
    one, two = load(choice), load(choice)
    assert (one.digest, one.transcripts, one.queries, one.notes) == (
        two.digest,
        two.transcripts,
        two.queries,
        two.notes,
    )
    assert one.qrels.equals(two.qrels)


def test_ids_are_unique(dataset: Dataset) -> None:
    messages = [(t.workspace_id, m.message_id) for t in dataset.transcripts for m in t.messages]
    assert len(set(messages)) == len(messages)
    assert len({query.query_id for query in dataset.queries}) == len(dataset.queries)
    conversations = [(t.workspace_id, t.conversation_id) for t in dataset.transcripts]
    assert len(set(conversations)) == len(conversations)


def test_every_judgement_names_a_message_of_the_querys_workspace(dataset: Dataset) -> None:
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    messages = {(t.workspace_id, m.message_id) for t in dataset.transcripts for m in t.messages}
    judged = list(dataset.qrels.iter_rows())
    assert judged
    assert all((workspace[query_id], message_id) in messages for query_id, message_id, _ in judged)
    assert len({(query_id, message_id) for query_id, message_id, _ in judged}) == len(judged)


def test_every_transcript_survives_the_store_unchanged(dataset: Dataset) -> None:
    parts: System = system()
    for transcript in dataset.transcripts:
        with parts.open() as memory:
            memory.store.ingest(transcript, parts.token_estimator)
            assert tuple(memory.store.messages(transcript.conversation_id)) == transcript.messages
