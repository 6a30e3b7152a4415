"""Authored files in a memory: what is found, and what an edit changes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lcm.compaction.guidance.scanner import ByteScanner
from lcm.context.assembly.continuity import Continuity
from lcm.context.authored import AuthoredFiles
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.store.documents import read_nodes
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import minute, system, transcript

TEXT = """\
- Never feed the goats after dusk.

You must count the goats twice.

> Goats are friends.

The goats sleep in the barn.

Kettles are kept in the cellar.
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "AGENTS.md"
    path.write_text(TEXT)
    return path


def parts(*paths: Path) -> System:
    authored = AuthoredFiles(ByteScanner(), [str(path) for path in paths])
    return replace(system(), authored=authored, assembly=Continuity(Utf16Units()))


def found(memory: Memory, question: str) -> list[str]:
    ranked = memory.search(question, minute(60))
    return ranked.filter(ranked["kind"] == "authored")["text"].to_list()


def hard(memory: Memory) -> Sequence[str]:
    with memory.store.reading() as connection:
        return [node.text for node in read_nodes(connection) if node.tier == "hard"]


def test_variants_are_found_and_what_is_shown_anyway_is_not(rules: Path) -> None:
    with Memory.open(parts(rules)) as memory:
        memory.ingest(transcript())
        assert set(found(memory, "goats")) == {"The goats sleep in the barn.", "Kettles are kept in the cellar."}
        (row,) = memory.documents.filter(text="The goats sleep in the barn.").to_dicts()
    assert (row["document_id"], row["kind"], row["authority"]) == ("AGENTS.md#000003", "authored", 1.0)
    assert (row["source_message_ids"], row["role"]) == ([], None)


def test_an_edited_file_is_read_when_the_workspace_is_opened_again(tmp_path: Path, rules: Path) -> None:
    """An edited block is found by its new words, though its id is the old one."""
    for _ in range(2):
        with Memory.open(parts(rules), tmp_path / "memory.db") as memory:
            memory.ingest(transcript())
            before = memory.documents
            assert found(memory, "barn goats")[0] == "The goats sleep in the barn."
    with Memory.open(parts(rules), tmp_path / "memory.db") as memory:
        assert memory.documents.equals(before), "unchanged files change nothing"
    rules.write_text(TEXT.replace("The goats sleep in the barn.", "Sheep graze on the hill.").replace("dusk", "noon"))
    with Memory.open(parts(rules), tmp_path / "memory.db") as edited, Memory.open(parts(rules)) as fresh:
        assert set(found(edited, "goats")) == {"Sheep graze on the hill.", "Kettles are kept in the cellar."}
        assert hard(edited) == ["Never feed the goats after noon."]
        ours, new = (memory.live.indexes.vector_index.vectors_of(["AGENTS.md#000003"]) for memory in (edited, fresh))
        assert ours.tolist() == new.tolist()


def test_what_is_deleted_is_forgotten(tmp_path: Path, rules: Path) -> None:
    with Memory.open(parts(rules), tmp_path / "memory.db") as memory:
        memory.ingest(transcript())
    with Memory.open(parts(), tmp_path / "memory.db") as memory:
        assert found(memory, "goats") == []
        assert hard(memory) == []
        assert len(memory.documents) == len(memory.live.indexes.vector_index) == 8
