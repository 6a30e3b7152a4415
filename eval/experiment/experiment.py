"""An experiment: replay a dataset through a memory system and its control arms, and measure what came back."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import polars as pl

from eval.arms import KnowsDataset
from eval.cache.stage_cache import Fingerprint, FrameCache, Made, Unidentified, digest
from eval.dataset.dataset import Dataset
from eval.executor import Executor, FailedItem, NoExecutor
from eval.experiment.flags import (
    contexts_compacted,
    flags_of_contexts,
    flags_of_haystacks,
    flags_of_parts,
    flags_of_pools,
    flags_of_run,
    flags_of_usage,
)
from eval.experiment.outcome import (
    ALIGNED,
    Outcome,
    aligned_values,
    asked_of,
    embedding_price,
    embedding_spent,
    flags_of_external,
    refuse_sessions,
    served,
    with_value,
    without_answer,
)
from eval.experiment.workspace import ACTED, RUN_SCHEMA, WorkspaceEvaluator, WorkspaceResult
from eval.measures.coverage import with_near_duplicates, with_ranked
from eval.measures.means import Means
from eval.measures.measure import (
    QUERY_VALUES_SCHEMA,
    VALUES_SCHEMA,
    Measure,
    RunReading,
    SystemReading,
    directions_of,
    timed,
)
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import Retrieval, judged_queries
from eval.replay.workspace_replay import Bulk, Replay
from lcm.errors import DatasetError, LcmError
from lcm.faults import counting
from lcm.memory.session import heartbeat_ids
from lcm.memory.system import System
from lcm.protocols.retrieval import Ranker
from lcm.retrieval.frames import KeptBeside
from lcm.retrieval.ranking.pipeline import POOL_ACTED

_TURNS = 2
"""So often a worker takes a part: each time it opens its own models, but one done early takes from what is left."""


def evaluate_distributed(
    evaluator: WorkspaceEvaluator, executor: Executor, progress: Callable[[int], None]
) -> list[WorkspaceResult]:
    """Have workers evaluate every workspace of a dataset; each gets its part of the dataset alone.

    Args:
        progress: told how many queries were answered, workspace by workspace.
    Returns:
        In the order of the dataset.
    Raises:
        LcmError: naming the workspace that came to no end; the others are given up.
    """
    dataset = evaluator.dataset
    queries = Counter(query.workspace_id for query in dataset.queries)
    parts = _dealt(dataset, _TURNS * executor.workers)
    results: dict[str, WorkspaceResult] = {}
    evaluators = [replace(evaluator, dataset=part) for part in parts]
    with closing(executor.map(evaluate_all, evaluators)) as messages:
        for message in messages:
            if isinstance(message, FailedItem):
                at_work = next(one for one in parts[message.item].workspaces if one not in results)
                raise LcmError(f"workspace {at_work!r} came to no end: {message.reason}")
            results[message.workspace_id] = message
            progress(queries[message.workspace_id])
    return [results[workspace] for workspace in dataset.workspaces]


def evaluate_all(evaluator: WorkspaceEvaluator) -> Iterator[WorkspaceResult]:
    """Evaluate every workspace of an evaluator's dataset, in the worker's own process."""
    for workspace in evaluator.dataset.workspaces:
        yield evaluator.evaluate(workspace, lambda queries: None)


def refuse_timing(executor: Executor, measures: Mapping[str, Measure]) -> None:
    """Refuse to time live queries beside workers.

    Raises:
        LcmError: saying what to set.
    """
    for name, queries in timed(measures).items():
        if not isinstance(executor, NoExecutor):
            raise LcmError(
                f"measures.{name}.queries={queries}: queries cannot be timed while workers share the machine; set "
                f"measures.{name}.queries=0, or time them with executor=none"
            )


def _dealt(dataset: Dataset, most: int) -> list[Dataset]:
    """Cut a dataset into at most so many parts, whole workspaces, those with most messages first and apart."""
    messages = Counter[str]()
    for transcript in dataset.transcripts:
        messages[transcript.workspace_id] += len(transcript.messages)
    largest_first = sorted(messages, key=lambda workspace: -messages[workspace])
    return [dataset.part(largest_first[i::most]) for i in range(min(most, len(largest_first)))]


_NAMED = ("workspace_id", "document_id")
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """Every workspace of a dataset, evaluated, and what they found measured together."""

    evaluator: WorkspaceEvaluator
    means: Means = field(default_factory=Means)
    executor: Executor = field(default_factory=NoExecutor)
    """Who evaluates workspaces: this process, or others. The numbers are equal."""

    def __post_init__(self) -> None:
        evaluator, dataset = self.evaluator, self.evaluator.dataset
        refuse_timing(self.executor, evaluator.measures)
        refuse_sessions(evaluator.system, evaluator.measures)
        is_judged = not judged_queries(dataset).is_empty()
        if not is_judged and not any(
            measure.is_measured(evaluator.system, dataset) for measure in evaluator.measures.values()
        ):
            needs = {name: one.needs for name, one in evaluator.measures.items() if one.needs}
            if needs and len(needs) == len(evaluator.measures):
                raise DatasetError("; ".join(f"measures={name} needs {what}" for name, what in needs.items()))
            raise DatasetError(
                f"dataset {dataset.name!r} ({dataset.protocol}) has no judgements to measure retrieval by, only "
                f"{len(dataset.transcripts)} transcripts, {len(dataset.queries)} queries, {len(dataset.references)} "
                f"references and {dataset.options['query_id'].n_unique()} queries with options: choose one whose "
                "queries have evidence, as dataset=sample has; options are chosen from with measures=answers, "
                "references of whole conversations are held against summaries with compaction=lossless"
            )

    def run(self, progress: Progress) -> Outcome:
        started = time.perf_counter()
        results = self.results(progress)
        replayed = time.perf_counter()
        progress("measuring", 0, 1)
        outcome = self.outcome(results)
        progress("measuring", 1, 1)
        return replace(outcome, seconds={"replay": replayed - started, "measures": time.perf_counter() - replayed})

    def sampled(self, part: Dataset, sample: Dataset, measure: str, progress: Progress) -> pl.Series:
        """The values of one measure, by name, of the system for some queries: equal to those of a whole run.

        Args:
            part: the workspaces that are replayed, with all that is asked of them.
            sample: what is asked of them now, and judged.
        """
        sampling = replace(self, evaluator=self.evaluator.sampling(part, sample, measure))
        results = sampling.results(progress)
        documents = pl.concat([one.documents for one in results])
        judging = replace(self, evaluator=self.evaluator.sampling(sample, sample, measure))
        values = judging._of_arm(results, SYSTEM_ARM, documents, judging._of_memories(results))
        return pl.concat(values.values()).filter(measure=measure)["value"]

    @property
    def _controls(self) -> list[str]:
        return [arm for arm in self.evaluator.rankings if arm != SYSTEM_ARM]

    def part(self, workspaces: Collection[str]) -> "Experiment":
        """The same experiment over some workspaces."""
        return replace(self, evaluator=replace(self.evaluator, dataset=self.evaluator.dataset.part(workspaces)))

    def results(self, progress: Progress) -> list[WorkspaceResult]:
        """Evaluate every workspace; in the order of the dataset."""
        answered, dataset = 0, self.evaluator.dataset

        def count(queries: int) -> None:
            nonlocal answered
            answered += queries
            progress("replaying", answered, len(dataset.queries))

        count(0)
        if not isinstance(self.executor, NoExecutor):
            return evaluate_distributed(self.evaluator, self.executor, count)
        return [self.evaluator.evaluate(workspace, count) for workspace in dataset.workspaces]

    def outcome(self, results: Sequence[WorkspaceResult]) -> Outcome:
        """Measure what was found in all workspaces, in the order of the dataset."""
        evaluator, dataset = self.evaluator, self.evaluator.dataset
        documents = pl.concat([one.documents for one in results])
        system_run = _ranked(results, [SYSTEM_ARM])
        control_run, named_by_controls, served_by_controls = self._control_run(results)
        counted = sum((one.incidents for one in results), Counter[str]())
        acted = {name.removeprefix(ACTED) for name in counted if name.startswith(ACTED)}
        incidents = Counter({name: times for name, times in counted.items() if not name.startswith(ACTED)})
        frames = self._of_memories(results)
        whole = SystemReading(evaluator.system, dataset, incidents, documents)
        with counting(incidents):
            for name, measure in evaluator.measures.items():
                if measure.subject == "system":
                    frames[name] = measure.rows(whole)
            of_system = self._of_arm(results, SYSTEM_ARM, documents, frames)
            controls = self._of_controls(results, documents, frames)
        system_values = pl.concat([pl.DataFrame(schema=VALUES_SCHEMA), *of_system.values()])
        judged = len(judged_queries(dataset))
        for name, measure in evaluator.measures.items():
            if measure.subject == "rankings":
                frames[name] = pl.concat([of_system[name], *(of[name] for of in controls.by_measure if name in of)])
        told = {
            name: section
            for name, measure in evaluator.measures.items()
            if name in frames and (section := measure.section(frames[name], self.means)) is not None
        }
        timing = [name for name, measure in evaluator.measures.items() if measure.is_of_time]
        contexts = [
            reading._replace(conversation_id=f"{one.workspace_id} {reading.conversation_id}")
            for one in results
            for reading in one.contexts
        ]
        compacted = contexts_compacted(contexts)
        decisions = pl.concat([one.decisions for one in results])
        seen = contexts if self._reads_replay() else []  # measures that play sessions themselves tell of their own
        return Outcome(
            system_run=system_run,
            control_run=control_run,
            served=pl.concat([served(system_run), served_by_controls]),
            documents=documents.drop("kind", "is_durable", "session_id").join(
                pl.concat([_named(system_run), named_by_controls]), on=list(_NAMED), how="semi"
            ),
            system_values=system_values,
            control_values=controls.values,
            means=pl.concat([self.means.of_queries(system_values, dataset), controls.means]),
            confidence=self.means.confidence,
            frames={
                name: kept
                for name, rows in frames.items()
                if name not in timing and (kept := _kept(rows, is_told=name in told)) is not None
            },
            sections={name: section for name, section in told.items() if name not in timing},
            timing={name: told.get(name, {}) for name in timing},
            decisions=decisions,
            counts={
                "workspaces": len(results),
                "messages": sum(len(t.messages) for t in dataset.transcripts),
                "documents": len(documents),
                "queries": len(dataset.queries),
                "judged_queries": judged,
                "unjudged_queries": len(dataset.queries) - judged,
                **({} if dataset.layout is None else {"messages_a_query": dataset.layout.messages_a_query}),
                **({"contexts": len(compacted), "contexts_compacted": sum(compacted.values())} if compacted else {}),
                **embedding_price(evaluator.system, documents, dataset),
            },
            incidents=dict(sorted(incidents.items())),
            flags=(
                *flags_of_haystacks(dataset),
                *flags_of_external(results),
                *self._notes(results, frames, whole, of_rankings=True),
                *flags_of_run(
                    system_run,
                    documents,
                    evaluator.system,
                    len(dataset.queries) - without_answer(asked_of(results)),
                    {w for one in results for w in one.widths},
                ),
                *flags_of_pools(counted[f"{ACTED}{POOL_ACTED}"], evaluator.system),
                *flags_of_contexts(seen),
                *flags_of_parts(
                    evaluator.system,
                    {*acted, *(["session"] if self._has_session_acted(results) else [])},
                    pl.concat([one.ranked[SYSTEM_ARM] for one in results]) if len(dataset.queries) else None,
                    documents,
                    decisions,
                    seen,
                    getattr(evaluator.replay, "is_per_turn", False),
                ),
                *self._notes(results, frames, whole, of_rankings=False),
                *flags_of_usage(evaluator.system, dataset),
            ),
            seconds={},
            spent=embedding_spent(evaluator.system, sum((one.spent for one in results), Counter[str]())),
            directions=directions_of(evaluator.measures),
        )

    def _control_run(self, results: Sequence[WorkspaceResult]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """The rankings of the control arms, the documents that these name, and how concentrated they are.

        Made once for all points of a sweep that share the arms.
        """
        arms = self._controls
        keys = [(one.workspace_id, arm, one.keys.get(arm)) for one in results for arm in arms]
        key = None if any(key is None for *_, key in keys) else _digest(keys)
        stages = FrameCache(self.evaluator.cache)
        found = stages.at_hand("control_run", key, partial(_ranked, results, arms))
        named = stages.at_hand("named by controls", key, partial(_named, found))
        return found, named, stages.at_hand("served by controls", key, partial(served, found))

    def _reads_replay(self) -> bool:
        """Whether a measure reads what was replayed; not those that take sessions in themselves."""
        return any(one.subject != "system" for one in self.evaluator.measures.values())

    def _has_session_acted(self, results: Sequence[WorkspaceResult]) -> bool:
        """Say whether a large file was taken out of its context, a conversation left out, or a heartbeat hidden."""
        rules, transcripts = self.evaluator.system.session, self.evaluator.dataset.transcripts
        if any(one.large_files for one in results) or not all(
            rules.writes(one.conversation_id, one.conversation_id) for one in transcripts
        ):
            return True
        hides = rules.prune_heartbeat_turns and getattr(self.evaluator.replay, "is_per_turn", False)
        return hides and any(heartbeat_ids(one.messages) for one in transcripts)

    def _of_memories(self, results: Sequence[WorkspaceResult]) -> dict[str, pl.DataFrame]:
        """Measure that reads memories -> its rows of all workspaces; those of no query begin with workspace_id."""
        frames = {}
        for name in self.evaluator.measures:
            parts = [
                one.measured[name].select(pl.lit(one.workspace_id).alias("workspace_id"), pl.all())
                for one in results
                if name in one.measured
            ]
            if parts:
                rows = pl.concat(parts)
                if self.evaluator.measures[name].of_arms:
                    rows = rows.filter(pl.col("arm").is_in(self._arms_that_answer(results)))
                elif "query_id" in rows.columns:
                    rows = rows.select(pl.lit(SYSTEM_ARM).alias("arm"), pl.all())
                frames[name] = rows.drop("workspace_id") if "query_id" in rows.columns else rows
        return frames

    def _arms_that_answer(self, results: Sequence[WorkspaceResult]) -> list[str]:
        """The system, and the control arms that ranked anything: without judgements the oracle knows nothing."""
        return [SYSTEM_ARM, *(arm for arm in self._controls if any(len(one.ranked[arm]) for one in results))]

    def _of_controls(
        self, results: Sequence[WorkspaceResult], documents: pl.DataFrame, frames: Mapping[str, pl.DataFrame]
    ) -> "_OfControls":
        """What the control arms reached: once for points that share them."""
        cache, dataset = self.evaluator.cache, self.evaluator.dataset
        key = self._key_of_controls(results)

        def made() -> tuple[_OfControls, int]:
            by_measure = [self._of_arm(results, arm, documents, frames) for arm in self._controls]
            every = [pl.DataFrame(schema=VALUES_SCHEMA), *(rows for values in by_measure for rows in values.values())]
            values = pl.concat(every)
            of_means = FrameCache(cache).frame(
                "means", key, lambda: (self.means.of_queries(values, dataset), Counter())
            )
            return _OfControls(by_measure, values, of_means[0]), int(values.estimated_size())

        return made()[0] if cache is None or key is None else cache.in_memory("controls", key, made)

    def _key_of_controls(self, results: Sequence[WorkspaceResult]) -> str | None:
        """The digest of all that the values of the control arms depend on; None where something has none, or is the
        point's own: its memory answers, or its ranking has texts that a ceiling counts."""
        measures = {name: one for name, one in self.evaluator.measures.items() if one.of_arms}
        if any(one.subject != "rankings" for one in measures.values()):
            return None
        if any(one.external or _stands_for_others(one.ranked[SYSTEM_ARM]) for one in results):
            return None
        keys = [(one.workspace_id, arm, one.keys.get(arm)) for one in results for arm in self._controls]
        is_known = all(key is not None for *_, key in keys)
        return _digest([keys, self.evaluator.dataset.digest, measures, self.means]) if keys and is_known else None

    def _of_arm(
        self, results: Sequence[WorkspaceResult], arm: str, documents: pl.DataFrame, frames: Mapping[str, pl.DataFrame]
    ) -> dict[str, pl.DataFrame]:
        """Measure -> its values of an arm, rows of `VALUES_SCHEMA`."""
        stages, is_control = FrameCache(self.evaluator.cache), arm != SYSTEM_ARM
        asked = None if is_control else asked_of(results)
        found: dict[str, pl.DataFrame] = {}
        for name, measure in self.evaluator.measures.items():
            if is_control and not measure.of_arms:
                continue
            if measure.subject == "rankings":
                is_kept = is_control or not self.evaluator.is_one_of_many
                key = self._key(results, arm, measure) if is_kept else None
                make = partial(self._of_run, results, arm, documents, measure)
                rows, _ = stages.frame("values", key, make, in_memory=is_control)
            elif name not in frames or "query_id" not in frames[name].columns:
                continue
            else:
                rows = frames[name].filter(arm=arm)
            if asked is not None:
                rows = with_value(rows, asked, by_messages=measure.subject == "rankings")
            found[name] = rows.select(pl.lit(arm).alias("arm"), *QUERY_VALUES_SCHEMA)
        if asked is not None:
            found[ALIGNED] = aligned_values(asked).select(pl.lit(arm).alias("arm"), *QUERY_VALUES_SCHEMA)
        return found

    def _key(self, results: Sequence[WorkspaceResult], arm: str, measure: Measure) -> str | None:
        """The digest of all that a measure of an arm depends on; None where something has none."""
        keys = [one.keys.get(read) for one in results for read in self._read_by(results, arm)]
        return None if None in keys else _digest([keys, self.evaluator.dataset.digest, measure])

    def _read_by(self, results: Sequence[WorkspaceResult], arm: str) -> list[str]:
        """The arm, and of a ceiling those too that rank more than its documents: an external memory's texts, or
        documents that stand for others."""
        is_ceiling = any(arm in one.reachable for one in results)
        others = self.evaluator.rankings.keys() - {arm} if is_ceiling else ()
        more = (
            other for other in others if any(one.external or _stands_for_others(one.ranked[other]) for one in results)
        )
        return [arm, *sorted(more)]

    def _of_run(self, results: Sequence[WorkspaceResult], arm: str, documents: pl.DataFrame, measure: Measure) -> Made:
        run = pl.concat([one.run(arm) for one in results])
        texts = pl.concat([one.evidence_text for one in results])
        reached = [one.reachable[arm] for one in results if arm in one.reachable]
        rankings = [one.ranked[read] for one in results for read in self._read_by(results, arm)]
        reachable = with_ranked(pl.concat(reached), rankings) if reached else None
        return measure.rows(RunReading(arm, run, documents, self.evaluator.dataset, texts, reachable)), Counter()

    def _notes(
        self,
        results: Sequence[WorkspaceResult],
        frames: Mapping[str, pl.DataFrame],
        whole: SystemReading,
        *,
        of_rankings: bool,
    ) -> Iterator[str]:
        """What measures of rankings tell, or all others."""
        silent = sorted(self.evaluator.rankings.keys() - self._arms_that_answer(results))
        for name, measure in self.evaluator.measures.items():
            if name in frames and (measure.subject == "rankings") == of_rankings:
                yield from measure.notes(frames[name], whole)
                if measure.subject == "answers" and measure.of_arms and silent:
                    yield f"{name}: without {', '.join(silent)}, which ranked nothing"


class _OfControls(NamedTuple):
    """The values of the control arms and their means."""

    by_measure: Sequence[Mapping[str, pl.DataFrame]]
    """Of each arm: measure -> rows of `VALUES_SCHEMA`."""
    values: pl.DataFrame
    means: pl.DataFrame


def _stand_for_others(ranked: pl.DataFrame) -> bool:
    return bool((ranked["stands_for"].list.len() > 0).any())


_stands_for_others = KeptBeside(_stand_for_others, 4096)
"""Whether a document of a ranking stands for another: control arms have one ranking for all points of a sweep."""


def _ranked(results: Sequence[WorkspaceResult], arms: Sequence[str]) -> pl.DataFrame:
    """What these arms ranked in all workspaces."""
    return pl.concat([pl.DataFrame(schema=RUN_SCHEMA), *(one.run(arm) for one in results for arm in arms)])


def _named(run: pl.DataFrame) -> pl.DataFrame:
    """The documents that a run names, or whose near duplicates it names, each once."""
    return with_near_duplicates(run).select(_NAMED).unique()


def _kept(rows: pl.DataFrame, *, is_told: bool) -> pl.DataFrame | None:
    """What the file of a measure holds: of rows of queries what they say beside values, once a query and arm, if they
    do; of other rows all, if the summary tells of them."""
    if "query_id" not in rows.columns:
        return rows if is_told else None
    return (
        None if VALUES_SCHEMA.keys() >= set(rows.columns) else rows.drop("measure", "value").unique(maintain_order=True)
    )


def _digest(parts: Sequence[Any]) -> str | None:
    identity = Fingerprint()
    try:
        return digest(identity.of(parts), identity.modules)
    except Unidentified:
        return None


_BULK, _MEANS, _RETRIEVAL = Bulk(), Means(), Retrieval()


def evaluate(
    system: System,
    dataset: Dataset,
    measures: Mapping[str, Measure] | None = None,
    arms: Mapping[str, Ranker | KnowsDataset] | None = None,
    replay: Replay = _BULK,
    means: Means = _MEANS,
) -> pl.DataFrame:
    """Replay a dataset through a memory system, and measure what came back.

    Args:
        measures: by name; None = those of retrieval.
        arms: other rankings over the very same memory.
        replay: how transcripts reach the memory.
        means: how intervals are made.
    Returns:
        Rows arm (`system` and those of `arms`), group (`all`, or a category), measure, value, n, low, high.
    Raises:
        DatasetError: if nothing in the dataset is judged.
    """
    wanted = {"retrieval": _RETRIEVAL} if measures is None else measures
    evaluator = WorkspaceEvaluator(dataset, system, replay, wanted, arms or {})
    return Experiment(evaluator, means).run(lambda what, done, total: None).means
