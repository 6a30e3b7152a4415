"""A point: one composed configuration, run and kept. What evaluate, sweep, tune and regress have in common.

Many are shared out by an executor: to each worker a run of neighbours, which one function in its process runs. A worker
that does not see the caller's folders, as on another machine of a cluster, sends the files of its points.
"""

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from omegaconf import DictConfig

from eval.cache.stage_cache import StageCache, loaded
from eval.configuration import config_hash
from eval.dataset.collection import rejudged
from eval.dataset.dataset import Dataset, DatasetLoader
from eval.executor import Executor, NoExecutor, shared_out
from eval.experiment.experiment import Experiment, Progress, refuse_timing
from eval.experiment.outcome import write_run
from eval.experiment.workspace import Times, WorkspaceEvaluator, refuse_unmeasured
from eval.external.ranking import External
from eval.replay.haystack import Haystack
from eval.run import POINT, Run
from eval.study.point import PointFolder
from lcm.errors import LcmError
from lcm.faults import MachineFaultError, is_of_machine
from lcm.files import cache_dir
from lcm.memory.system import System
from lcm.protocols.models import ReadsModel
from lcm.retrieval.embedder.cache import CachedEmbedder
from pipelines.config import building, contracts
from pipelines.config.composition import CONFIGURATION_ERRORS, explain
from pipelines.config.contracts import idle_note
from pipelines.config.presets import asked_of

PARTS = ("dataset", "distractors", "replay", "measures", "means", "memory", "arms", "executor", "tracking", "stages")
"""What the configuration builds."""
READ = (*PARTS, "cache", "judgements", "report")
"""Those, and what is read beside them: whatever else there is acts by what one of these refers to."""


def parts_of(
    config: DictConfig, overrides: Sequence[str] | None = None, whole: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The components that a configuration describes, by the names of `PARTS`, and what `dataset_of` needs besides.

    Args:
        config: composed.
        overrides: what was asked for, if that is to be refused where nothing takes it up.
        whole: the configuration as `building.worked_out` gives it, where that is known.
    Raises:
        LcmError: naming every setting that one of them refuses, and all that cannot work together.
    """

    def measures(parts: dict[str, Any]) -> None:
        parts["measures"] = {name: measure for name, measure in parts["measures"].items() if measure is not None}
        refuse_unmeasured(parts["measures"])

    return _judgements(config) | building.build_all(
        config,
        PARTS,
        measures,
        lambda parts: refuse_timing(parts["executor"], parts["measures"]),
        lambda _: None if overrides is None else contracts.refuse_unused(config, overrides),
        lambda _: building.flag(config, "cache"),
        lambda _: building.flag(config, "report") if "report" in config else None,  # of an older run it is not
        whole=whole,
    )


def evaluated(
    config: DictConfig,
    folder: Path,
    show: Progress,
    dataset: Dataset | None = None,
    parts: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    plain: Mapping[str, Any] | None = None,
    times: Times | None = None,
) -> dict[str, Any]:
    """Run what a configuration describes and write its folder; returns the summary, as `read_summary` gives it.

    Args:
        overrides: of which it was composed.
        plain: the configuration resolved, where that was done before, for it takes as long as ranking.
        show, dataset, parts, times: as those of `measured` and `experiment_of`.
    Raises:
        LcmError: if the folder holds a complete run already, or something in the configuration cannot be built.
    """
    Run.begin(folder)
    experiment = experiment_of(config, dataset, parts, times, is_one_of_many=times is not None)
    return measured(config, experiment, folder, show, overrides, plain)


def measured(
    config: DictConfig,
    experiment: Experiment,
    folder: Path,
    show: Progress,
    overrides: Sequence[str],
    plain: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run the experiment that a configuration describes and write its folder, which was begun, with what the
    configuration is and how it differs from the default."""
    started = time.perf_counter()
    outcome = experiment.run(show)
    seconds = {"total": time.perf_counter() - started}
    if note := idle_note(config, plain):
        outcome = replace(outcome, flags=(note, *outcome.flags))
    plain = building.resolved(config) if plain is None else plain
    text, asked = building.resolved_text(plain), asked_of(config, overrides)
    dataset = experiment.evaluator.dataset
    return write_run(folder, outcome, dataset, building.identity(plain), text, seconds, asked)


def experiment_of(
    config: DictConfig,
    dataset: Dataset | None = None,
    parts: Mapping[str, Any] | None = None,
    times: Times | None = None,
    is_one_of_many: bool = False,
) -> Experiment:
    """The experiment that a configuration describes.

    Args:
        config: composed.
        dataset: loaded before; None = as the configuration says. It is laid out and judged as the configuration says.
        parts: built before; None = as the configuration says.
        times: of the points before this one in its process, which takes over those of the same work.
        is_one_of_many: as of `WorkspaceEvaluator`.
    """
    parts = parts or parts_of(config)
    system, stages = _system(config, parts)
    refuse_absent_model(system.compaction)
    evaluator = WorkspaceEvaluator(
        dataset=dataset_of(parts, stages, dataset),
        system=system,
        replay=parts["replay"],
        measures=parts["measures"],
        arms=parts["arms"] or {},
        cache=stages,
        times=times,
        is_one_of_many=is_one_of_many,
    )
    return Experiment(evaluator, parts["means"], parts["executor"])


def told_of_external(parts: Mapping[str, Any]) -> str:
    """What an external memory says of itself, name and version, and what is known of its code and surroundings; empty
    of a system of ours.

    Raises:
        LcmError: if it may not be asked.
    """
    ranking = parts["memory"].ranking
    if not isinstance(ranking, External):
        return ""
    return " ".join([*ranking.told(parts["stages"])[:2], ranking.identity() or ""])


def refuse_absent_model(compaction: object) -> None:
    """Refuse to run without the model of the summarizer: what is then measured would be of no summarizer at all.

    A chain, which has others to ask, is not refused.

    Raises:
        ModelError: if it is not there.
    """
    summarizer = getattr(compaction, "summarizer", None)
    if isinstance(summarizer, ReadsModel):
        summarizer.model_folder()


def dataset_described(config: DictConfig) -> Dataset:
    """The dataset that a configuration describes, where nothing else of it is wanted; as `dataset_of`."""
    parts = {part: building.build(config, part) for part in ("dataset", "replay", "distractors") if part in config}
    return dataset_of({"distractors": {}} | parts | _judgements(config))


def _judgements(config: DictConfig) -> dict[str, Path | None]:
    named = config.get("judgements")
    return {"judgements": None if named is None else Path(str(named)).expanduser()}


def dataset_of(parts: Mapping[str, Any], stages: StageCache | None = None, dataset: Dataset | None = None) -> Dataset:
    """The dataset that a configuration describes: laid into its haystacks, then judged by the file that it names.

    Args:
        parts: built of the configuration.
        stages: keeps datasets at hand; None = they are read.
        dataset: loaded before.
    """
    if dataset is None:
        dataset = loaded(parts["dataset"], stages)
    replay, loaders = parts["replay"], parts["distractors"]
    if isinstance(replay, Haystack):  # under another's own replay the workspaces stay as they are
        dataset = replay.laid_out(
            dataset, lambda: {name: loaded(one, stages) for name, one in loaders.items() if _names(one)}
        )
    return dataset if parts["judgements"] is None else rejudged(dataset, parts["judgements"])


def _names(loader: DatasetLoader) -> bool:
    """Whether a loader that reads files of the user's names any."""
    return bool(getattr(loader, "paths", True))


def _system(config: DictConfig, parts: Mapping[str, Any]) -> tuple[System, StageCache | None]:
    """The memory system, and where its stages are kept: its embeddings then are too."""
    system: System = parts["memory"]
    if not config.cache:
        return system, None
    return replace(system, embedder=CachedEmbedder(system.embedder, cache_dir() / "embeddings")), parts["stages"]


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """One configuration of many, composed and built before the first of them runs."""

    name: str
    """Of its folder."""
    label: str
    """The overrides that tell it from the others."""
    overrides: tuple[str, ...]
    """Of which its configuration was composed."""
    config: DictConfig
    plain: Mapping[str, Any]
    """The configuration, resolved."""
    parts: Mapping[str, Any]
    """`PARTS` -> component."""

    @property
    def dataset(self) -> str:
        """What tells its dataset from those of other points."""
        return config_hash({"dataset": self.plain["dataset"]})


class PointJob(NamedTuple):
    """A point whose folder was begun."""

    point: Point
    folder: Path
    record: bytes
    """The folder's `point.json`."""


class _PointEnd(NamedTuple):
    """How a point ended."""

    reason: str | None
    """Why there are no numbers."""
    files: Mapping[str, bytes] | None = None
    """What is to lie in the folder of the point, where its worker does not see that."""


def run_points(
    executor: Executor, jobs: Sequence[PointJob], datasets: Mapping[str, Dataset], show: Progress
) -> Generator[tuple[PointJob, str | None], None, None]:
    """Run points; each as it ends, and why it failed, which its folder then says too.

    Fewer points than workers run one after another, each with its workspaces shared out.

    Args:
        datasets: by what points call theirs.
    Raises:
        MachineFaultError: where a full disk and the like is the reason, which the other points would meet too.
    """
    if len(jobs) < executor.workers:
        executor = NoExecutor()
    else:
        jobs = [job._replace(point=_alone(job.point)) for job in jobs]
    task = partial(_run_each, datasets, show if isinstance(executor, NoExecutor) else _unseen)
    with closing(shared_out(executor, task, jobs)) as ended:
        for place, end in ended:
            job, kept = jobs[place], PointFolder(jobs[place].folder)
            if isinstance(end, _PointEnd) and end.files:
                kept.put(end.files)
            if end.reason is not None and not kept.is_complete():
                kept.fail(end.reason)
            yield job, end.reason


def _alone(point: Point) -> Point:
    """The point as one process runs it."""
    return replace(point, parts={**point.parts, "executor": NoExecutor()})


def _run_each(datasets: Mapping[str, Dataset], show: Progress, jobs: Sequence[PointJob]) -> Iterator[_PointEnd]:
    """Run the points that one process has been given, each whole."""
    times: Times = {}
    for job in jobs:
        with _place_of(job) as folder:
            reason = None
            try:
                point = job.point
                dataset = datasets[point.dataset]
                evaluated(point.config, folder, show, dataset, point.parts, point.overrides, point.plain, times)
            except Exception as error:  # told of this point: the others may be sound
                reason = reason_of(error)
            yield _PointEnd(reason, None if folder == job.folder else _files(folder))


@contextmanager
def _place_of(job: PointJob) -> Iterator[Path]:
    """The folder of a point; where that is out of sight, one for as long as the point runs."""
    if (job.folder / POINT).is_file():
        yield job.folder
        return
    with TemporaryDirectory(prefix="lcm-") as place:
        (Path(place) / POINT).write_bytes(job.record)
        yield Path(place)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _unseen(what: str, done: int, total: int) -> None:
    """Progress that nobody is shown: whole points are counted."""


def reason_of(error: Exception) -> str:
    """Why a point has no numbers, in a line.

    Raises:
        MachineFaultError: where a full disk and the like is the reason, which the other points would meet too.
    """
    reason = explain(error)
    if is_of_machine(error):
        raise MachineFaultError(reason) from error
    if not isinstance(error, (LcmError, ValueError, OSError, *CONFIGURATION_ERRORS)):
        reason = f"{type(error).__name__}: {reason} (a defect; run this point by itself with --debug)"
    return reason
