"""A memory that is a Python class: it works in a process of its own."""

import json
import re
import sys
from contextlib import closing
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from eval.arms import Oracle
from eval.external.mcp import Mcp, McpConnection, Tool
from eval.external.object_host import _answer
from eval.external.process import PythonObject
from eval.external.ranking import External
from eval.external.session import FaultError, Found, Told, read_found, read_told, reset_arguments
from eval.measures.latency import Latency
from eval.measures.retention import Retention
from eval.measures.retrieval import Retrieval
from lcm.consent import TRUST
from lcm.errors import LcmError
from tests.eval.external.test_stand_ins import dataset, values
from tests.support import experiments
from tests.support.workspaces import LINES, system

NEWEST = "tests.support.external.memories.Newest"


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRUST, "tests")


def test_a_class_is_evaluated_like_any_memory_and_timed_apart_from_the_way_to_it() -> None:
    retrieval, retention = Retrieval(names=["recall@1"]), Retention(budgets=(1000,))
    measures = {"retrieval": retrieval, "retention": retention, "latency": Latency()}
    external = External(PythonObject(NEWEST, {"mark": "Ada: "}), k=5)
    outcome = experiments.outcome(dataset(LINES[7], LINES[0]), system(ranking=external), measures)
    assert values(outcome) == {"other": 0.0, "q0": 1.0, "q1": 0.0}
    assert values(outcome, "retained@1000") == {"other": 1.0, "q0": 1.0, "q1": 1.0}
    assert outcome.incidents == {}
    assert any("external memory Newest 3 answered 3 of 3" in flag for flag in outcome.flags)
    times = outcome.timing["latency"]
    assert {name: part["n"] for name, part in times.items()} == dict.fromkeys(("total", "memory", "transport"), 3)
    assert times["total"]["p50_ms"] > times["memory"]["p50_ms"] >= 10


def test_what_a_class_says_of_itself_when_it_is_reset_is_heard_and_plain_texts_are_results() -> None:
    with closing(PythonObject("tests.support.external.memories.Plain").open()) as connection:
        told = read_told(connection.call("reset", {"workspace": "one"}))
        assert told == Told("Plain", "4", ("context",), ("retrieval.weight",))
        connection.call("add", {"messages": [{"id": "m", "content": "a goat"}]})
        asked = {"query": "goat", "k": 1, "asked_at": "2026-01-01", "scopes": None}
        assert read_found(connection.call("search", asked)) == [Found("a goat")]


def test_the_oracle_reads_the_texts_that_were_returned_too() -> None:
    """No message covers more than itself, and one text may hold all."""
    of = dataset()
    both = replace(of, qrels=pl.concat([of.qrels, of.qrels.with_columns(query_id=pl.lit("q0"))]).unique())
    external = External(PythonObject("tests.support.external.memories.Whole"))
    measures = {"retrieval": Retrieval(names=["recall@1", "recall@20"])}
    outcome = experiments.outcome(both, system(ranking=external), measures, {"oracle": Oracle()})
    assert values(outcome)["q0"] == values(outcome, arm="oracle")["q0"] == 3 / 4


def test_what_a_class_raises_is_an_error_of_that_call() -> None:
    external = External(PythonObject("tests.support.external.memories.Broken"))
    outcome = experiments.outcome(dataset(), system(ranking=external))
    assert values(outcome) == {}
    assert outcome.incidents == {"external: search error": 4}
    assert any("KeyError: 'index'" in flag for flag in outcome.flags)


def test_code_that_is_not_trusted_is_not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUST)
    with pytest.raises(LcmError, match=r"code of tests: if you trust it to run, say trust=\[tests\]"):
        PythonObject(NEWEST).open()
    with pytest.raises(LcmError, match=r"external.target names no class"):
        PythonObject().open()


def test_scores_of_numpy_are_numbers_and_what_is_no_json_costs_its_query_alone() -> None:
    replies = StringIO()
    for score in (np.float32(0.5), object()):
        memory = SimpleNamespace(search=lambda score=score: [("tea", score)])
        _answer(memory, {"id": 1, "call": "search"}, replies)
    told, refused = map(json.loads, replies.getvalue().splitlines())
    assert told["results"] == [{"text": "tea", "score": 0.5, "source_ids": None}]
    assert refused == {"id": 1, "error": "what search gave is no JSON: object is no text, number, list or map"}


def test_an_object_is_set_or_says_that_it_cannot_be() -> None:
    for name, settings, told in (
        ("Configured", {"mark": "said: "}, "answered 4 of 4"),
        ("Newest", {"mark": "said: "}, "answered none of 4 .*settings"),
        ("Newest", {}, "answered 4 of 4"),
    ):
        external = External(PythonObject(f"tests.support.external.memories.{name}"), k=2, settings=settings)
        flags = experiments.outcome(dataset(), system(ranking=external)).flags
        assert any(re.search(told, flag) for flag in flags), (name, settings)


@pytest.mark.parametrize("reset", [None, Tool("clear", {"what": "{workspace}"})])
def test_a_server_that_would_not_hear_of_them_is_refused(reset: Tool | None) -> None:
    server = Mcp(command=[sys.executable], reset=reset)
    with (
        closing(McpConnection(server)) as connection,
        pytest.raises(LcmError, match=r"external.reset has no argument {settings}"),
    ):
        connection.call("reset", {"workspace": "one", "settings": {"a": 1}})


def test_what_a_memory_ignores_is_a_list_of_paths() -> None:
    assert read_told({}).ignores is None
    assert read_told({"ignores": []}).ignores == ()
    assert read_told({"ignores": ["retrieval.minScore"]}).ignores == ("retrieval.minScore",)
    for wrong in ("minScore", [1], {"a": 1}):
        with pytest.raises(FaultError, match="ignores must be a list of paths of settings"):
            read_told({"ignores": wrong})
    assert reset_arguments("one", {}) == {"workspace": "one"}
    assert reset_arguments("one", {"a": 1}) == {"workspace": "one", "settings": {"a": 1}}
