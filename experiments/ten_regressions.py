"""Ten invented regressions, a report page each, for a reader who has the page alone.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/ten_regressions.py pages key.json [SEED]

Each is a pair of runs on two conversations of LoCoMo, `before` and `after`. Three change a setting, which the page
shows. Seven change what no setting tells: data that is lost on its way into the memory, or a part that stands in under
the name of the one that is configured and does its work badly. The pages are written to PAGES as page-01.html ... in an
order that SEED (0) draws; KEY says the cause of each, and is for when all answers are given. docs/regressions_read.md
tells how they are read.
"""

import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

from eval.comparison.comparison import compared
from eval.comparison.pairing import comparable
from eval.comparison.report import write_comparison
from eval.experiment.experiment import Experiment
from eval.experiment.workspace import WorkspaceEvaluator
from eval.replay.workspace_replay import Replay
from eval.run import Run
from lcm.errors import LcmError
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.protocols.writing import Assessment, Extraction
from lcm.records.conversation import Message, Transcript
from lcm.records.document import Candidate
from lcm.records.query import Query
from lcm.retrieval.frames import best_first, places
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import dense_branch, merge
from lcm.writing.admission.amac import AdmitAll
from pipelines.config import composition
from pipelines.steps import reporting
from pipelines.steps.point import experiment_of, measured
from pipelines.steps.runs import RepeatedRun, repeated_run

COMMON = (
    "dataset=locomo", "dataset.only=[conv-26,conv-30]", "dataset.categories=[1,2,3,4]", "arms=none",
    "measures.latency.queries=0",
)  # fmt: skip
Fault = Callable[[WorkspaceEvaluator], WorkspaceEvaluator]


@dataclass(frozen=True, slots=True)
class Regression:
    """A change that makes a memory system worse."""

    cause: str
    system: tuple[str, ...]
    """The settings of both sides."""
    settings: tuple[str, ...] = ()
    """Those of the second side besides."""
    fault: Fault | None = None
    """What the second side suffers without a setting that says so."""


def main(arguments: Sequence[str]) -> None:
    pages, key = Path(arguments[0]), Path(arguments[1])
    drawn = list(REGRESSIONS)
    random.Random(int(arguments[2]) if len(arguments) > 2 else 0).shuffle(drawn)  # no secret
    pages.mkdir(parents=True, exist_ok=True)
    causes: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        for number, regression in enumerate(drawn, start=1):
            name = f"page-{number:02}"
            causes[name] = {"cause": regression.cause} | shown(regression, Path(place) / name, pages / f"{name}.html")
            print(f"{name} is written", flush=True)
    key.write_text(json.dumps(causes, indent=1) + "\n", "utf-8")


def shown(regression: Regression, folder: Path, page: Path) -> dict[str, float]:
    """Run both sides and write the page of their comparison; returns recall@10 of each."""
    before, after, into = folder / "before", folder / "after", folder / "compare"
    ran(before, regression.system, None)
    ran(after, (*regression.system, *regression.settings), regression.fault)
    found = compared([comparable(before, "before"), comparable(after, "after")])
    write_comparison(into, found)

    def repeated(side: Path) -> RepeatedRun:
        run = repeated_run(side)
        return run if side != after else replace(run, experiment=planted(run.experiment, regression.fault))

    with patch.object(reporting, "repeated_run", repeated):
        written = reporting.Reporter(lambda *_: None).write(into)
    shutil.copyfile(written, page)
    return {one.side.name: round(one.means["recall@10"]["value"], 3) for one in found.standings}


def ran(folder: Path, overrides: Sequence[str], fault: Fault | None) -> None:
    Run.begin(folder)
    config = composition.composed([*COMMON, *overrides])
    measured(config, planted(experiment_of(config), fault), folder, lambda *_: None, ())


def planted(experiment: Experiment, fault: Fault | None) -> Experiment:
    """An experiment that suffers a fault, and takes nothing from the cache of one that does not."""
    if fault is None:
        return experiment
    return replace(experiment, evaluator=fault(replace(experiment.evaluator, cache=None)))


def in_data(change: Callable[[Transcript], Sequence[Message]]) -> Fault:
    """The memory is told other messages than were said."""

    def told(talk: Transcript) -> Transcript:
        return replace(talk, messages=tuple(change(talk)))

    return lambda evaluator: replace(evaluator, replay=Garbled(evaluator.replay, told))


def in_part(change: Callable[[System], Mapping[str, Any]]) -> Fault:
    """Parts of the system do their work badly."""
    return lambda evaluator: replace(evaluator, system=replace(evaluator.system, **change(evaluator.system)))


def in_stages(**stages: Any) -> Fault:
    """Stages of the ranking do their work badly."""

    def change(system: System) -> Mapping[str, Any]:
        assert isinstance(system.ranking, Ranking)
        return {"ranking": replace(system.ranking, stages={**system.ranking.stages, **stages})}

    return in_part(change)


@dataclass(frozen=True, slots=True)
class Garbled:
    """A replay that tells a memory something else than was said."""

    whole: Replay
    told: Callable[[Transcript], Transcript]

    def play(
        self, memory: Memory, transcripts: Sequence[Transcript], queries: Sequence[Query]
    ) -> Iterator[list[Query]]:
        yield from self.whole.play(memory, [self.told(one) for one in transcripts], queries)


def without_a_speaker(talk: Transcript) -> list[Message]:
    lost = sorted({message.author or message.role for message in talk.messages})[0]
    return [message for message in talk.messages if (message.author or message.role) != lost]


def without_the_newest(talk: Transcript) -> list[Message]:
    sessions = list(dict.fromkeys(message.session_id for message in talk.messages))
    kept = set(sessions[: len(sessions) * 3 // 4])
    return [message for message in talk.messages if message.session_id in kept]


def every_other_session_a_year_early(talk: Transcript) -> list[Message]:
    sessions = list(dict.fromkeys(message.session_id for message in talk.messages))
    early = set(sessions[1::2])
    moved = [
        replace(message, created_at=message.created_at - timedelta(days=365))
        if message.session_id in early and message.created_at is not None
        else message
        for message in talk.messages
    ]
    return sorted(moved, key=lambda message: (message.created_at is not None, message.created_at))


@dataclass(frozen=True, slots=True)
class SilentWords:
    """A source whose index of words finds nothing, and says nothing of it."""

    contract = Contract(needs_vectors=True)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        return merge(batch, dense_branch(batch, 1000))


@dataclass(frozen=True, slots=True)
class ShortLimit:
    """A limit that lets four documents through, whatever it is set to."""

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        ordered = best_first(frame)
        return ordered.filter(pl.Series(places(ordered) < 4))


@dataclass(frozen=True, slots=True)
class FirstWords:
    """An extraction that keeps the first six words of what another extracts."""

    whole: Extraction

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        found = self.whole.extract(messages, known, incidents=incidents)
        return [replace(one, text=" ".join(one.text.split()[:6])) for one in found]


@dataclass(frozen=True, slots=True)
class ShortAlone(AdmitAll):
    """An admission that refuses what says more than 140 characters."""

    def assess(self, candidate: Candidate, *_: Any, **__: Any) -> Assessment:
        return Assessment(is_admitted=len(candidate.text) <= 140, reason="judged")


_AGEING = ("system=hybrid", "decay=weibull", "decay.floor_working=0.0", "decay.recency_half_life_days=200.0")
REGRESSIONS = (
    Regression("one of the two speakers is not stored", (), fault=in_data(without_a_speaker)),
    Regression("the newest quarter of the sessions is not stored", (), fault=in_data(without_the_newest)),
    Regression(
        "every other session is dated a year too early, so that the decay takes its messages for old",
        _AGEING,
        fault=in_data(every_other_session_a_year_early),
    ),
    Regression(
        "the branch of words finds nothing",
        ("system=neighbours",),
        fault=in_part(lambda system: {"ranking": replace(system.ranking, source=SilentWords())}),
    ),
    Regression("the limit lets four documents through", (), fault=in_stages(limit=ShortLimit())),
    Regression(
        "documents hold the first six words of their messages",
        ("system=hybrid",),
        fault=in_part(lambda system: {"extraction": FirstWords(system.extraction)}),
    ),
    Regression(
        "admission refuses long messages",
        ("system=hybrid",),
        fault=in_part(lambda _: {"admission": ShortAlone()}),
    ),
    Regression(
        "neighbouring turns lend far too much of their scores",
        ("system=neighbours",),
        ("ranking.stages.neighbours.dense_weight=4.0", "ranking.stages.neighbours.lexical_weight=4.0"),
    ),
    Regression("the decay is too fast", _AGEING, ("decay.recency_half_life_days=2.0",)),
    Regression(
        "the minimum score behind the decay is too high",
        ("system=lancedb_pro",),
        ("ranking.stages.hard_min_score.threshold=0.6",),
    ),
)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise LcmError("name the folder of the pages and the file of the key: ten_regressions.py pages key.json")
    main(sys.argv[1:])
