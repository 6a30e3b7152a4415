"""What commands make, made once for a whole run of the tests and looked at by all: to change one, copy its folder."""

import json
import math
import shutil
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pipelines import cli
from pipelines.views import progress
from tests.support.once import made_once

QUICK = (
    *("system=hybrid", "embedder=hashing", "arms=none", "tracking=none", "report=false"),
    *("measures.latency.queries=0", "means.resamples=20"),
)
"""An evaluation of the bundled sample that takes a second."""
NO_CONTEXTS = "measures.retention.budgets=[]"
SHOWN = tuple(setting for setting in QUICK if setting != "report=false")
CONTROLLED = (*(setting for setting in SHOWN if setting != "arms=none"), "measures.latency.queries=3")
SWEPT = ("fusion.dense_weight=0.2,0.4", *SHOWN, NO_CONTEXTS)
"""Neither point is the default, which is run beside them."""
ONE_WEIGHT = ("space={fusion.dense_weight: {low: 0.0, high: 1.0}}",)
STUDIED = ("tune", *SHOWN, *ONE_WEIGHT, "study.sampler=random", "study.trials=4")


COMPACTED = (
    *("compact", str(Path(__file__).parents[2] / "data" / "sample" / "transcripts"), "into=out", "shards=2"),
    *("triggers=per_turn", "compaction.leaf_chunk_tokens=500", "compaction.min_leaf_tokens=0"),
    *("compaction.fresh_tail_count=4", "embedder=hashing", "tracking=none"),
)
HOSTILE = "<script>alert(1)</script>"


@dataclass(frozen=True)
class Finished:
    """What `lcm` left behind."""

    code: int
    stdout: str
    stderr: str
    place: Path

    @property
    def summaries(self) -> list[Path]:
        return sorted(self.place.rglob("summary.json"))

    @property
    def folder(self) -> Path:
        """Of the one run."""
        (summary,) = self.summaries
        return summary.parent

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())


def given(place: Path, *arguments: str) -> Finished:
    """Give `lcm ARGUMENTS` in this process and in a folder, with a cache and perhaps datasets beside it."""
    with (
        pytest.MonkeyPatch.context() as patch,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as errors,
    ):
        patch.chdir(place)
        patch.setattr(sys, "argv", sys.argv)
        patch.setattr(progress, "FIRST_AFTER_S", math.inf)
        patch.delenv("LCM_DATASETS_DIR", raising=False)
        if (place.parent / "datasets").is_dir():
            patch.setenv("LCM_DATASETS_DIR", str(place.parent / "datasets"))
        patch.setenv("LCM_CACHE_DIR", str(place.parent / "cache"))
        patch.setenv("COLUMNS", "200")
        code = cli.run(list(arguments))
    return Finished(code, out.getvalue(), errors.getvalue(), place)


def commanded(place: Path, *arguments: str) -> Finished:
    """As `given`, of a command that must succeed."""
    done = given(place, *arguments)
    assert done.code == 0, f"lcm {' '.join(arguments)}: {done.stderr}"
    return done


def copy_of(place: Path, to: Path) -> Path:
    """A copy of a folder at which others look meanwhile: SQLite's files beside a store that is read come and go."""
    come_and_go = shutil.ignore_patterns("*-wal", "*-shm")
    return Path(shutil.copytree(place, to, symlinks=True, ignore=come_and_go, dirs_exist_ok=True))


def copied(shown: Finished, tmp_path: Path) -> Path:
    """A copy of the folder in which a command ran, to be changed or to give commands in: `here`."""
    return copy_of(shown.place, tmp_path / "here")


def _looked_at(
    factory: pytest.TempPathFactory, name: str, *commands: Sequence[str], beside: Sequence[Path] = ()
) -> Finished:
    """What the last command said, and the folder in which all of them ran beside copies of other runs."""

    def make(folder: Path) -> None:
        (folder / "here").mkdir()
        for run in beside:
            copy_of(run, folder / "here" / run.name)
        done = [commanded(folder / "here", *command) for command in commands]
        (folder / "said.json").write_text(json.dumps([done[-1].stdout, done[-1].stderr]))

    folder = made_once(factory, name, make)
    return Finished(0, *json.loads((folder / "said.json").read_text()), folder / "here")


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`runs/first`: the sample by all control arms, three queries timed, and its page."""
    return _looked_at(tmp_path_factory, "evaluated", ("evaluate", *CONTROLLED, "hydra.run.dir=runs/first"))


@pytest.fixture(scope="session")
def compared(evaluated: Finished, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The runs `first` and `second`, their comparison `compared`, and the sample written as files, `sample`."""
    return _looked_at(
        tmp_path_factory,
        "compared",
        ("evaluate", *QUICK, "fusion=reciprocal_rank", "hydra.run.dir=second"),
        ("datasets", "write", "first", "to=sample"),
        ("compare", "first", "second", "into=compared", "tracking=none"),
        beside=[evaluated.folder],
    )


@pytest.fixture(scope="session")
def regressed(compared: Finished, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`gate`: the run `second` against itself."""
    regress = ("regress", "second", "second", "into=gate", "tracking=none", "regress.resamples=1000")
    return _looked_at(tmp_path_factory, "regressed", regress, beside=[compared.place / "second"])


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`runs/sweeps/...`: a sweep over two weights."""
    return _looked_at(tmp_path_factory, "swept", ("evaluate", "-m", *SWEPT))


@pytest.fixture(scope="session")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`runs/tune/study`: a study of one weight, of four trials."""
    return _looked_at(tmp_path_factory, "studied", STUDIED)


@pytest.fixture(scope="session")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """`out`: the sample's sessions turn by turn in two stores, by two workers."""
    return _looked_at(tmp_path_factory, "compacted", (*COMPACTED, "executor=local"))


@pytest.fixture(scope="session")
def logged(
    compared: Finished,
    regressed: Finished,
    swept: Finished,
    studied: Finished,
    compacted: Finished,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Copies of all these and a preset, `preset`, which are logged to `mlflow.db` beside them."""

    def make(folder: Path) -> None:
        place = folder / "here"
        for one in (swept, studied):
            copy_of(one.place, place)
        sides = (compared.place / name for name in ("first", "second", "compared"))
        for one in (*sides, regressed.place / "gate", compacted.place / "out"):
            copy_of(one, place / one.name)
        exported = ("export", "system=lancedb_pro", "decay.beta_core=0.9", "to=preset", "name=turned", "target=yaml")
        commanded(place, *exported, "tracking=none")
        (sweep,) = (place / "runs" / "sweeps").iterdir()
        commanded(place, "log", "first", "second", "compared", "gate", "out/run", "preset", str(sweep))
        commanded(place, *(word for word in STUDIED if word != "tracking=none"))  # all is left to log, nothing to run

    return made_once(tmp_path_factory, "logged", make) / "here"


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `runs` hold `a`, `b`, `swept`, `compared` and `memory.db`, of hostile talk and names."""

    def make(folder: Path) -> None:
        place = folder / "here"
        (place / "talks").mkdir(parents=True)
        things = ("torch", "kettle", "rope")
        lines = [
            {
                "role": role,
                "content": f"{HOSTILE} the {what} lies in drawer {i}",
                "timestamp": f"2026-01-0{i + 1}T09:00:00Z",
            }
            for i, (role, what) in enumerate(zip(("user", "assistant", "user"), things, strict=True))
        ]
        asked = [
            {"question_id": f"q{i}{HOSTILE}", "question": f"where is the {what}? {HOSTILE}", "evidence": [what]}
            for i, what in enumerate(things)
        ]
        (place / "talks" / "one.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (place / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
        evaluation = ("talks", "questions.jsonl", *QUICK, NO_CONTEXTS)
        commanded(place, "evaluate", *evaluation, "hydra.run.dir=runs/a")
        commanded(place, "evaluate", *evaluation, "hydra.run.dir=runs/b", "fusion=reciprocal_rank")
        swept = ("fusion.dense_weight=0.2,0.4", "hydra.sweep.dir=runs/swept")
        commanded(place, "evaluate", "-m", *evaluation, *swept)
        commanded(place, "compare", "runs/a", "runs/b", "into=runs/compared", "tracking=none")
        commanded(place, "ingest", "talks", "into=runs/memory.db")
        shutil.copytree(place / "runs" / "a", place / "runs" / HOSTILE.replace("/", " "))
        (place / "runs" / "link").symlink_to(place)

    return made_once(tmp_path_factory, "shelf", make) / "here"
