"""The laws of `DatasetLoader`, over every YAML of its group whose files are here."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from eval.dataset.dataset import Dataset
from eval.dataset.sample import bundled_directory
from lcm.clock import EPOCH
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.conversation import Message, Transcript
from pipelines.config import building, conf_folder
from tests.support.composing import composed
from tests.support.small_collection import write_small_beir
from tests.support.small_lmeb import write_task
from tests.support.workspaces import system

UNJUDGED = {
    "dialogsum": "500 dialogues with a reference summary each; nothing is asked",
    "personamem": "the gold ids name every session of a context, which is no evidence; its options say what is right",
    "transcripts": "whatever files it is given: nothing is asked of them",
}
"""Choice -> why it judges neither messages nor sessions. Any other dataset without judgements has lost them."""

VARIANTS = {
    "beam": ("dataset.size=500K", "dataset.size=1M"),
    "locomo": ("dataset.evidence=repaired", "dataset.evidence=both"),
    "longmemeval": ("dataset.protocol=all",),
}
"""Choice -> settings under which it has other transcripts or other judgements."""

_FOLDER = tempfile.TemporaryDirectory()
REQUIRED = {
    "beir": (f"dataset.directory={write_small_beir(Path(_FOLDER.name))}",),
    "lmeb": (f"dataset.directory={write_task(Path(_FOLDER.name) / 'lmeb').parent}",),
    "own": (
        f"dataset.paths={json.dumps([str(bundled_directory() / 'transcripts')])}",
        f"dataset.questions={bundled_directory() / 'queries.jsonl'}",
        "dataset.workspace=file",
    ),
    "transcripts": (f"dataset.paths={json.dumps([str(bundled_directory() / 'transcripts')])}",),
}
"""Choice -> settings without which it reads nothing."""

ALL_CASES = [
    (choice, *settings)
    for choice in conf_folder.groups()["dataset"]
    for settings in ((), *((setting,) for setting in VARIANTS.get(choice, ())))
]
"""A choice, with at most one setting."""

BUNDLED = ("beir", "lmeb", "own", "sample", "sample_long", "transcripts")
CASES = [case for case in ALL_CASES if case[0] in BUNDLED or os.environ.get("LCM_DATASETS_DIR")]


def load(choice: str, *settings: str) -> Dataset:
    config = composed([f"dataset={choice}", *REQUIRED.get(choice, ()), *settings])
    return building.build(config, "dataset").load()


@pytest.fixture(scope="module", params=CASES, ids=" ".join)
def case(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return request.param


@pytest.fixture(scope="module")
def dataset(case: tuple[str, ...]) -> Dataset:
    return load(*case)


def test_loading_twice_gives_equal_datasets(case: tuple[str, ...], dataset: Dataset) -> None:
    again = load(*case)
    for name in ("name", "protocol", "digest", "transcripts", "queries", "groups", "notes"):
        assert getattr(dataset, name) == getattr(again, name)
    for name in ("qrels", "session_qrels", "references", "options"):
        assert getattr(dataset, name).equals(getattr(again, name))


def test_ids_are_unique_and_every_query_is_asked_of_a_workspace_that_exists(dataset: Dataset) -> None:
    messages = [(t.workspace_id, m.message_id) for t in dataset.transcripts for m in t.messages]
    assert len(set(messages)) == len(messages)
    assert len({query.query_id for query in dataset.queries}) == len(dataset.queries)
    conversations = [(t.workspace_id, t.conversation_id) for t in dataset.transcripts]
    assert len(set(conversations)) == len(conversations)
    assert {query.workspace_id for query in dataset.queries} <= {t.workspace_id for t in dataset.transcripts}


def test_a_dataset_judges_something_or_is_named_here(case: tuple[str, ...], dataset: Dataset) -> None:
    judged = len(dataset.qrels) + len(dataset.session_qrels)
    assert (judged == 0) == (case[0] in UNJUDGED)


def test_the_tables_name_only_what_exists() -> None:
    assert {*UNJUDGED, *VARIANTS, *REQUIRED, *BUNDLED} <= set(conf_folder.groups()["dataset"])


@pytest.mark.parametrize("unit", ["message", "session"])
def test_every_judgement_names_a_unit_of_the_querys_workspace(dataset: Dataset, unit: str) -> None:
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    units = {(t.workspace_id, getattr(m, f"{unit}_id")) for t in dataset.transcripts for m in t.messages}
    judged = list((dataset.qrels if unit == "message" else dataset.session_qrels).iter_rows())
    assert all((workspace[query_id], unit_id) in units for query_id, unit_id, _ in judged)
    assert len({(query_id, unit_id) for query_id, unit_id, _ in judged}) == len(judged)
    assert all(relevance >= 0 for _, _, relevance in judged)


def test_what_messages_say_of_their_session_is_not_judged_again(dataset: Dataset) -> None:
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    session = {(t.workspace_id, m.message_id): m.session_id for t in dataset.transcripts for m in t.messages}
    through = {(query_id, session[workspace[query_id], message]) for query_id, message, _ in dataset.qrels.iter_rows()}
    assert not through & set(dataset.session_qrels.select("query_id", "session_id").iter_rows())


def test_every_reference_names_a_conversation_of_the_querys_workspace(dataset: Dataset) -> None:
    workspace = {query.query_id: query.workspace_id for query in dataset.queries}
    conversations = {(t.workspace_id, t.conversation_id) for t in dataset.transcripts}
    known = {conversation_id for _, conversation_id in conversations}
    for conversation_id, query_id, text in dataset.references.iter_rows():
        assert conversation_id in known
        assert query_id is None or (workspace[query_id], conversation_id) in conversations
        assert text.strip()


def test_every_query_with_options_has_exactly_one_correct_one(dataset: Dataset) -> None:
    by_query = dataset.options.group_by("query_id").agg(
        correct=pl.col("is_correct").sum(), options=pl.len(), different=pl.col("option").n_unique()
    )
    assert set(by_query["correct"]) <= {1}
    assert by_query["options"].to_list() == by_query["different"].to_list()
    assert (by_query["options"] > 1).all()


def test_every_transcript_survives_the_store_unchanged(dataset: Dataset) -> None:
    parts: System = system()
    for transcripts in apart(dataset.transcripts):
        with Memory.open(parts) as memory:
            for transcript in transcripts:
                memory.store.ingest(transcript, parts.token_estimator)
            for transcript in transcripts:
                assert memory.store.messages(transcript.conversation_id) == list(dated(transcript.messages))


def apart(transcripts: Iterable[Transcript]) -> Iterator[list[Transcript]]:
    """In turn, as many at once as share no id: one store can hold them, as the workspaces of a dataset it cannot."""
    together: list[Transcript] = []
    taken: set[str] = set()
    for transcript in transcripts:
        ids = {transcript.conversation_id, *(message.message_id for message in transcript.messages)}
        if ids & taken:
            yield together
            together, taken = [], set()
        together.append(transcript)
        taken |= ids
    yield together


def dated(messages: Iterable[Message]) -> Iterator[Message]:
    """A message without a time takes the one before it, the epoch where nothing had any."""
    known = EPOCH
    for message in messages:
        known = message.created_at or known
        yield replace(message, created_at=known)
