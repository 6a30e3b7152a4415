"""Memories as they are published: each runs where its package is, in an interpreter or program of its own."""

import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from eval.external.mcp import Mcp
from eval.external.process import Stdio
from eval.external.ranking import External
from eval.measures.measure import Measure
from eval.measures.retrieval import Retrieval
from lcm.consent import COMMANDS
from pipelines.config import building, composition
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support import experiments
from tests.support.workspaces import system

EXAMPLES = Path(__file__).parents[3] / "docs/examples"
MEASURES: dict[str, Measure] = {"retrieval": Retrieval(names=["recall@1", "recall@5"])}


@pytest.mark.parametrize("package", ["mem0", "langmem"])
def test_each_finds_what_was_said_in_its_own_workspace_alone(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over an adapter of docs/examples, in the interpreter that has its package."""
    variable = f"LCM_{package.upper()}_PYTHON"
    if not (python := os.environ.get(variable)):
        pytest.skip(f"{package} is not here: {variable} names no interpreter that has it")
    command = [python, str(EXAMPLES / f"external/{package}_memory.py")]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    adapter = Stdio(command, environment=["HOME"])
    outcome = experiments.outcome(dataset(), system(ranking=External(adapter, k=5)), MEASURES)
    assert values(outcome) == EVERY_ONE
    assert values(outcome, "aligned") == EVERY_ONE
    assert outcome.incidents == {}
    assert any("answered 4 of 4" in flag for flag in outcome.flags)


@pytest.mark.skipif(
    shutil.which("mcp-server-memory") is None, reason="npm's @modelcontextprotocol/server-memory is not on the PATH"
)
def test_the_knowledge_graph_of_npm_finds_what_holds_the_whole_query(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ["sh", "-c", "MEMORY_FILE_PATH=$HOME/memory.jsonl exec mcp-server-memory"]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    chosen = [f"hydra.searchpath=[file://{EXAMPLES}]", "system=external", "external=server_memory"]
    transport: Mcp = replace(building.build(composition.composed(chosen), "external"), command=command)
    outcome = experiments.outcome(dataset(), system(ranking=External(transport, k=5)), MEASURES)
    assert values(outcome) == EVERY_ONE
    assert outcome.incidents == {}
