"""The log of an external memory is kept by its command, what that names, its version, and the user's revision."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from eval.cache.stage_cache import StageCache, _foreign_source, _source, source_digest
from eval.experiment.experiment import Experiment
from eval.experiment.outcome import Outcome
from eval.experiment.workspace import WorkspaceEvaluator
from eval.external.process import PythonObject, Stdio
from eval.external.ranking import External
from eval.ladder.explanation import explained
from eval.ladder.losses import FOUND, UNANSWERED, asked_again, losses, said_messages
from eval.measures.means import Means
from eval.measures.retrieval import Retrieval
from eval.replay.workspace_replay import Bulk
from lcm.consent import COMMANDS, TRUST
from pipelines.steps.point import told_of_external
from tests.eval.external.test_stand_ins import EVERY_ONE, dataset, values
from tests.support.workspaces import system

MEMORY = """
import json, sys
open({count!r}, "a").write("s" * (len(sys.argv) > 2))
said = []
for line in sys.stdin:
    call = json.loads(line)
    reply = {{}}
    if call["call"] == "reset":
        said, reply = [], {{"name": "words", "version": open({version!r}).read()}}
    elif call["call"] == "add":
        said += call["messages"]
    else:
        open({count!r}, "a").write("q")
        if {fails!r} == call["query"]:
            sys.exit(1)
        words = set(call["query"].split())
        said.sort(key=lambda one: -len(words & set(one["content"].split())))
        reply = {{"results": [{{"text": one["content"], "source_ids": [one["id"]]}} for one in said[: call["k"]]]}}
    print(json.dumps({{**reply, "id": call["id"]}}), flush=True)
"""


class Bench:
    """A memory that is a file of one's own, whose queries are counted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, fails: str = "") -> None:
        self.script, self.version, self._count = (folder / name for name in ("memory.py", "version", "count"))
        told = {"count": str(self._count), "version": str(self.version), "fails": fails}
        self.script.write_text(MEMORY.format(**told))
        self.version.write_text("1")
        command = [sys.executable, str(self.script)]
        monkeypatch.setenv(COMMANDS, shlex.join(command))
        external = External(Stdio(command), k=3)
        measures = {"retrieval": Retrieval(names=["recall@1"])}
        cache = StageCache(str(folder / "stages"), memory_gib=0)
        self.evaluator = WorkspaceEvaluator(dataset(), system(ranking=external), Bulk(), measures, cache=cache)

    def run(self, **settings: object) -> Outcome:
        ranking = replace(self.evaluator.system.ranking, **settings)  # type: ignore[type-var]
        evaluator = replace(self.evaluator, system=replace(self.evaluator.system, ranking=ranking))
        return Experiment(evaluator, Means(resamples=20)).run(lambda *_: None)

    def asked(self) -> int:
        """How many queries it was asked since this was last looked at."""
        count = self._count.read_text().count("q") if self._count.exists() else 0
        self._count.write_text("")
        return count


def test_a_memory_is_asked_once_until_something_of_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch)
    first = bench.run()
    assert (values(first), bench.asked()) == (EVERY_ONE, 4)
    again = bench.run()
    assert again.values.equals(first.values)
    assert again.run.equals(first.run)
    assert (again.flags, bench.asked()) == (first.flags, 0)
    for changed in ({"revision": "another collection"}, {"k": 2}, {"settings": {"weight": 1}}):
        bench.run(**changed)
        assert bench.asked() == 4, changed
    bench.version.write_text("2")
    assert any("external memory words 2 answered" in flag for flag in bench.run().flags)
    assert bench.asked() == 4
    bench.script.write_text(f"{bench.script.read_text()}# another one\n")
    bench.run()
    assert bench.asked() == 4


def test_a_variable_that_the_memory_is_given_is_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another checkout, or another configuration, is named by a variable; the command stays the same."""
    bench = Bench(tmp_path, monkeypatch)
    transport = replace(bench.evaluator.system.ranking.transport, environment=["PLUGIN_CONFIG"])  # type: ignore[attr-defined]
    named = tmp_path / "config.json"
    for content, asked in (("{}", 4), ("{}", 0), ('{"weight": 1}', 4)):
        named.write_text(content)
        monkeypatch.setenv("PLUGIN_CONFIG", str(named))
        bench.run(transport=transport)
        assert bench.asked() == asked, content
    monkeypatch.setenv("PLUGIN_CONFIG", str(tmp_path))
    bench.run(transport=transport)
    assert bench.asked() == 4


def test_the_source_of_a_class_is_part_of_where_numbers_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRUST, "of_mine")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = list[str]()
    for line in ("", "# another one"):
        (tmp_path / "of_mine.py").write_text(f"class Memory: ...\n{line}\n")
        for cached in (source_digest, _source, _foreign_source):
            cached.cache_clear()
        ranking = External(PythonObject("of_mine.Memory"))
        told.append(told_of_external({"memory": system(ranking=ranking), "stages": StageCache(str(tmp_path / "kept"))}))
    assert told[0] != told[1]


def test_what_a_fault_disturbed_is_asked_again_and_was_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first workspace answers; the memory crashes at the second query of the second, and its third is not asked."""
    bench = Bench(tmp_path, monkeypatch, fails=dataset().queries[2].text)
    for asked in (3, 2):  # the first workspace was not disturbed
        assert values(bench.run()) == {"other": 1.0, "q0": 1.0}
        assert bench.asked() == asked
    rows = losses(bench.evaluator, lambda _: None)
    expected = {"other": FOUND, "q0": FOUND, "q1": UNANSWERED, "q2": UNANSWERED}
    assert dict(rows.select("query_id", "place").iter_rows()) == expected
    assert rows["step"].null_count() == 4
    (again,) = asked_again(bench.evaluator, "second", {"q1"})
    found = explained(again, "talk:3", said_messages(bench.evaluator.dataset, "second"))
    assert found.headline == "unanswered: it is no miss: the external memory gave no answer to the question"
    assert not found.is_tried


def test_a_run_of_an_external_memory_tells_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = Bench(tmp_path, monkeypatch).evaluator
    (asked,) = asked_again(evaluator, "second", {"q0"})
    said = said_messages(evaluator.dataset, "second")
    found = explained(asked, "talk:0", said)
    assert (found.place, found.rank) == (FOUND, 1)
    assert found.found_by["branch"].to_list() == ["external"]
    missed = explained(asked, "talk:4", said)
    assert missed.headline == "not in the pool: the source found 3 documents, and none that stands for it"
