"""What every loader of a published format promises, on a small copy of that format."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.beam import Beam
from eval.dataset.dataset import Dataset
from eval.dataset.dialogsum import Dialogsum
from eval.dataset.lmeb import Lmeb
from eval.dataset.locomo import Locomo
from eval.dataset.longmemeval import LongMemEval
from eval.dataset.personamem import Personamem
from eval.dataset.qmsum import Qmsum
from eval.replay.workspace_replay import growth
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from tests.eval.dataset.test_dialogsum import write_small_dialogsum
from tests.eval.dataset.test_personamem import write_small_personamem
from tests.eval.dataset.test_qmsum import write_small_qmsum
from tests.support.releases import know
from tests.support.small_beam import RECORD as BEAM
from tests.support.small_beam import write_folders, write_lines
from tests.support.small_lmeb import write_small_lmeb
from tests.support.small_locomo import CONVERSATIONS, write_small_locomo
from tests.support.small_locomo import RECORD as CONVERSATION
from tests.support.small_longmemeval import RECORD as HAYSTACK
from tests.support.small_longmemeval import write_small_longmemeval

Write = Callable[[Path, pytest.MonkeyPatch], str]


def write_beam(directory: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_lines(directory)
    return know(monkeypatch, Beam, directory)


LOADERS: dict[str, tuple[Any, Write, list[str]]] = {
    "beam": (Beam, write_beam, ["Secret", "more hives.", "unknown"]),
    "dialogsum": (Dialogsum, write_small_dialogsum, ["secret", "lets"]),
    "lmeb": (Lmeb, write_small_lmeb, ["single_hop"]),
    "locomo": (Locomo, write_small_locomo, ["Which cat?", "Wrongly"]),
    "longmemeval": (LongMemEval, write_small_longmemeval, ["answer", "sharegpt", "noans"]),
    "personamem": (Personamem, write_small_personamem, ["gold", "suggest_new_ideas"]),
    "qmsum": (Qmsum, write_small_qmsum, ["secret", "They bought"]),
}
"""The loader, what writes its small copy, and words of questions, answers and topics."""


def write_several(name: str) -> Write:
    """Return what writes at least two workspaces."""
    records = {"locomo": (CONVERSATION, {"sample_id": "conv-2"}), "longmemeval": (HAYSTACK, {"haystack_id": "hay2"})}
    if name == "beam":
        return lambda directory, monkeypatch: str(
            write_folders(directory, [BEAM, BEAM | {"conversation_id": "beam-100K-2"}])
        )
    if name in records:
        first, changes = records[name]
        return lambda directory, monkeypatch: LOADERS[name][1](directory, monkeypatch, first, first | changes)  # type: ignore[call-arg]
    return LOADERS[name][1]


def opaque(dataset: Dataset) -> bool:
    ids = {one for t in dataset.transcripts for m in t.messages for one in (m.message_id, m.session_id)}
    ids |= {transcript.conversation_id for transcript in dataset.transcripts}
    return all(re.fullmatch(r"[0-9a-f]{16}", one) for one in ids)


@pytest.mark.parametrize("name", LOADERS)
def test_the_system_sees_opaque_ids_and_no_answer(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, write, secrets = LOADERS[name]
    dataset = loader(write(tmp_path, monkeypatch)).load()
    assert opaque(dataset)
    sessions = {(t.workspace_id, m.session_id) for t in dataset.transcripts for m in t.messages}
    messages = {(t.workspace_id, m.message_id) for t in dataset.transcripts for m in t.messages}
    assert len(messages) == sum(len(t.messages) for t in dataset.transcripts)
    assert not sessions & messages
    assert [words for words in secrets if words in repr(dataset.transcripts)] == []


@pytest.mark.parametrize("name", [name for name in LOADERS if name != "lmeb"])  # of LMEB no release is known
def test_an_unknown_file_is_loaded_with_a_note_or_refused_where_pinned(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, write, _ = LOADERS[name]
    folder = write(tmp_path, monkeypatch)
    notes = loader(folder, pinned=True).load().notes
    assert loader(folder).load().notes == notes
    for path in [tmp_path / CONVERSATIONS] if name == "locomo" else sorted(tmp_path.iterdir()):
        known = path.read_bytes()
        path.write_bytes(gzip.compress(gzip.decompress(known), mtime=1) if path.suffix == ".gz" else known + b"\n")
        told, *others = loader(folder).load().notes
        assert "known release, taken as " in told
        assert tuple(others) == notes
        with pytest.raises(DatasetError, match="is not the pinned file"):
            loader(folder, pinned=True).load()
        path.write_bytes(known)


@pytest.mark.parametrize("name", LOADERS)
def test_a_digest_belongs_to_the_settings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, write, _ = LOADERS[name]
    settings: dict[str, list[dict[str, Any]]] = {
        "locomo": [{"evidence": "repaired"}, {"categories": [1]}],
        "longmemeval": [{"protocol": "all"}, {"added_questions": False}, {"protocol": "all", "added_questions": False}],
        "qmsum": [{"marks": "keep"}],
    }
    folder = write(tmp_path, monkeypatch)
    digests = [loader(folder, **chosen).load().digest for chosen in ({}, *settings.get(name, []))]
    assert len(set(digests)) == len(digests)
    assert loader(folder).load().digest == digests[0]


@pytest.mark.parametrize("name", LOADERS)
def test_some_workspaces_are_taken_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader, _, _ = LOADERS[name]
    folder = write_several(name)(tmp_path, monkeypatch)
    whole = loader(folder).load()
    last = whole.workspaces[-1]
    assert len(whole.workspaces) > 1
    part = loader(folder, only=[last]).load()
    expected = whole.part({last})
    assert (part.transcripts, part.queries) == (expected.transcripts, expected.queries)
    for frame in ("qrels", "session_qrels", "references", "options"):
        assert getattr(part, frame).equals(getattr(expected, frame))
    assert (part.protocol, part.digest != whole.digest) == (f"{whole.protocol} only={last}", True)
    with pytest.raises(DatasetError, match=r"dataset\.only names 'nowhere', which .* does not hold; it holds "):
        loader(folder, only=["nowhere"]).load()


@pytest.mark.parametrize("name", ["personamem", "qmsum"])
def test_where_nothing_has_a_time_every_query_hears_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader, write, _ = LOADERS[name]
    dataset = loader(write(tmp_path, monkeypatch)).load()
    assert {message.created_at for t in dataset.transcripts for message in t.messages} == {None}
    assert all(query.asked_at > EPOCH for query in dataset.queries)
    ((heard, asked),) = growth(dataset.transcripts, dataset.queries)
    assert (tuple(one for one, _ in heard), tuple(asked)) == (dataset.transcripts, dataset.queries)
