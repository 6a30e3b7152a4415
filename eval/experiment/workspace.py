"""Evaluates one workspace of a dataset: replays its transcripts, ranks its queries for every arm, reads its memory."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import polars as pl

from eval.arms import KnowsDataset, ceilings_among, rankings_of
from eval.cache.pools import with_cached_pools
from eval.cache.stage_cache import Fingerprint, FrameCache, Made, StageCache, Unidentified, digest
from eval.dataset.dataset import Dataset
from eval.external.ranking import External
from eval.external.reading import RecordedAnswers
from eval.measures.coverage import evidence_text
from eval.measures.measure import REPORT_TOKENS, Measure, MemoryReading
from eval.measures.names import SYSTEM_ARM
from eval.replay.workspace_replay import Replay, ReplayCheckpoint, WorkspaceReplay
from lcm.errors import LcmError
from lcm.faults import counting
from lcm.memory.live_documents import readable_scopes
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.contract import contract_of
from lcm.protocols.retrieval import BringsDocuments, Ranker
from lcm.records.query import Query
from lcm.records.summary import ContextReading
from lcm.retrieval.ranking.pipeline import LISTS, RANKED_SCHEMA
from lcm.store.doctor import census

Fact = Callable[[Memory, Sequence[Query]], pl.DataFrame]
"""Tells one thing of a memory that holds all transcripts of its workspace, as far as these queries may read."""
_TEXTS_AT_ONCE = 1 << 14
"""Of the documents whose tokens are counted: no second copy of all words."""


def _readable(memory: Memory, queries: Sequence[Query], present: pl.Series) -> list[str] | None:
    """The scopes that some query reads; None where nothing lies in others: what nobody reads is not written."""
    each = [readable_scopes(query, memory.system.scopes) for query in queries]
    if None in each or not each:
        return None
    union = {scope for scopes in each for scope in scopes or ()}
    return None if union.issuperset(present) else sorted(union)


def readable_documents(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    readable = _readable(memory, queries, memory.documents["scope"])
    return memory.documents if readable is None else memory.documents.filter(pl.col("scope").is_in(readable))


def _documents(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    documents = readable_documents(memory, queries)
    parts = documents["text"].to_frame().iter_slices(_TEXTS_AT_ONCE)
    counts = [pl.Series("tokens", REPORT_TOKENS.count(part["text"].to_list()), dtype=pl.Int64) for part in parts]
    tokens = pl.concat([pl.Series("tokens", [], dtype=pl.Int64), *counts])
    columns = ("document_id", "source_message_ids", "kind", "is_durable", "session_id")
    return documents.select(*columns).with_columns(tokens)


def _decisions(memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
    decisions = memory.store.decisions()
    readable = _readable(memory, queries, decisions["scope"])
    return decisions if readable is None else memory.store.decisions(readable)


def _widths(memory: Memory, _: Sequence[Query]) -> pl.DataFrame:
    return pl.DataFrame({"width": pl.Series(getattr(memory.live.indexes.vector_index, "widths", ()), dtype=pl.Int64)})


def large_files(memory: Memory, _: Sequence[Query]) -> pl.DataFrame:
    """How many texts were taken out of their contexts: the one row of the one column."""
    with memory.store.reading() as connection:
        return pl.DataFrame({"large_files": [census(connection)["large files"]]})


FACTS: Mapping[str, Fact] = {
    "documents": _documents,
    "decisions": _decisions,
    "widths": _widths,
    "large_files": large_files,
}
"""By name; what is asked of the dataset too is the evaluator's own."""


RUN_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "index_tier": pl.Int64(),
    **{name: RANKED_SCHEMA[name] for name in LISTS},
}
_NOTHING_RANKED = pl.DataFrame(schema=RANKED_SCHEMA)
ACTED = "acted: "
"""Begins the name of a slot among the incidents of a workspace."""


@dataclass(frozen=True, slots=True)
class WorkspaceResult:
    """The results of one workspace: what each arm ranked, and what the measures read."""

    workspace_id: str
    ranked: Mapping[str, pl.DataFrame]
    """Arm -> rows of `RANKED_SCHEMA`."""
    measured: Mapping[str, pl.DataFrame]
    """Measure that reads memories -> its rows; of one that reads arms with the column `arm` before them."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, kind, is_durable, session_id, tokens."""
    evidence_text: pl.DataFrame
    """workspace_id beside `EVIDENCE_TEXT_SCHEMA`."""
    reachable: Mapping[str, pl.DataFrame]
    """Arm that is a ceiling -> query_id, document_id: what it could have ranked."""
    decisions: pl.DataFrame
    incidents: Counter[str]
    widths: Sequence[int]
    """Of the vector index, where it has several."""
    large_files: int
    """Texts that were taken out of their contexts."""
    contexts: Sequence[ContextReading]
    """What the triggers of compaction saw of each context."""
    keys: Mapping[str, str]
    """Arm -> the digest of all that its rows depend on; a missing arm has none."""
    spent: Counter[str] = field(default_factory=Counter)
    """Requests, texts and tokens that vectors with a price took, and texts whose vectors were cached."""
    external: RecordedAnswers | None = None
    """What an external memory answered, where the system is one."""

    def run(self, arm: str) -> pl.DataFrame:
        """Rows of `RUN_SCHEMA`."""
        named = {"arm": pl.lit(arm), "workspace_id": pl.lit(self.workspace_id)}
        return self.ranked[arm].with_columns(**named).select(list(RUN_SCHEMA))


Times = dict[str, Made]
"""What was timed, by the work that it took."""
_FRACTION = re.compile(r"-?\d+\.\d+(e[+-]?\d+)?|-?\d+e[+-]?\d+|-?inf|nan")


@dataclass(frozen=True, slots=True)
class WorkspaceEvaluator:
    """Evaluates the workspaces of a dataset, one at a time; what was found before comes from the cache.

    Can be sent to another process.
    """

    dataset: Dataset
    system: System
    replay: Replay
    measures: Mapping[str, Measure]
    """By name. Here those that read memories are asked; the others when all workspaces are done."""
    arms: Mapping[str, Ranker | KnowsDataset] = field(default_factory=dict)
    """Control arms: other rankings over the very same memory."""
    cache: StageCache | None = None
    """Where stages are kept, so that only what changes is worked out again; None = nowhere. The numbers are equal."""
    asked: frozenset[str] | None = None
    """Ids of the queries that are asked; None = all. Replays are those of all, and answers to some are not kept."""
    times: "Times | None" = None
    """Times of the points before, which those that do the same work take over; None = each is timed."""
    is_one_of_many: bool = False
    """True for a point of a sweep and a trial of a study: its folder alone keeps what its system answered,
    the cache what it shares with the others."""
    rankings: Mapping[str, Ranker] = field(init=False)
    """Arm -> what it ranks with; the system's own stands first, under `SYSTEM_ARM`."""
    evidence: Mapping[str, Sequence[str]] = field(init=False)
    """Query id -> ids of its relevant messages."""
    inputs: "_StageInputs | None" = field(init=False)
    """What the stages depend on; None = nothing is kept."""
    work: str | None = field(init=False)
    """The digest of what decides how long an answer takes; None = each point is timed."""

    def __post_init__(self) -> None:
        refuse_unmeasured(self.measures)
        controls = rankings_of(self.arms, self.dataset)
        object.__setattr__(self, "rankings", {SYSTEM_ARM: self.system.ranking, **controls})
        object.__setattr__(self, "evidence", self.dataset.evidence())
        object.__setattr__(self, "inputs", None if self.cache is None else _StageInputs(self))
        object.__setattr__(self, "work", self._identified_work())

    def sampling(self, part: Dataset, sample: Dataset, measure: str) -> "WorkspaceEvaluator":
        """The same, of the system's own ranking and one measure alone, for some queries.

        Args:
            part: the workspaces that are replayed, with all that is asked of them.
            sample: what is asked of them now.
            measure: the name of one that a measure here gives.
        """
        giver = next(name for name, one in self.measures.items() if measure in one.value_names())
        sampled = copy(self)  # what stages depend on is the same, and takes as long to tell as a few queries to rank
        for name, value in {
            "dataset": part,
            "measures": {giver: self.measures[giver].giving(measure)},
            "rankings": {SYSTEM_ARM: self.system.ranking},
            "asked": frozenset(query.query_id for query in sample.queries),
        }.items():
            object.__setattr__(sampled, name, value)
        return sampled

    def evaluate(self, workspace: str, progress: Callable[[int], None]) -> WorkspaceResult:
        """Replay one workspace and rank its queries for every arm; `progress` is told how many, as they are ranked."""
        incidents, before = Counter[str](), self._spent()
        with counting(incidents):
            result = self.bound(workspace)._evaluated(workspace, progress, incidents)
        return replace(result, spent=self._spent() - before)

    def _spent(self) -> Counter[str]:
        """Return the requests, texts and tokens that this process has spent on vectors; empty where they are free."""
        return Counter(getattr(self.system.embedder, "spent", ()))

    def bound(self, workspace: str) -> "WorkspaceEvaluator":
        """The same for one workspace: an external memory has been asked, and its answers are the system's ranking."""
        if not isinstance(self.system.ranking, External):
            return self
        budgets = {n for one in self.measures.values() for n in one.context_budgets}
        system = self.system.ranking.played(
            self.system,
            self.dataset,
            workspace,
            is_per_turn=getattr(self.replay, "is_per_turn", False),
            budgets=sorted(budgets),
            cache=self.cache,
        )
        return replace(self, system=system)

    def checkpoints(self, workspace: str) -> Iterator[tuple[ReplayCheckpoint, str | None]]:
        """The checkpoints of a workspace at which something is asked, from the cache where it holds them, each with the
        digest of all that its memory depends on; None = it has none."""
        queries = self._queries(workspace)
        keys = _StageKeys(self.inputs, workspace, queries)
        for checkpoint in self._replayed(workspace, queries, keys).checkpoints():
            if checkpoint.queries:
                yield checkpoint, keys.checkpoints

    def _queries(self, workspace: str) -> list[Query]:
        return [query for query in self.dataset.queries if query.workspace_id == workspace]

    def _replayed(self, workspace: str, queries: Sequence[Query], keys: "_StageKeys") -> WorkspaceReplay:
        transcripts = [t for t in self.dataset.transcripts if t.workspace_id == workspace]
        is_frozen = not self.system.reinforcement.recalled
        return WorkspaceReplay(self.system, self.replay, transcripts, queries, self.cache, keys.checkpoints, is_frozen)

    def _evaluated(self, workspace: str, progress: Callable[[int], None], incidents: Counter[str]) -> WorkspaceResult:
        queries = self._queries(workspace)
        keys = _StageKeys(self.inputs, workspace, queries, are_kept=self.asked is None)
        replayed = self._replayed(workspace, queries, keys)
        external = self.system.ranking if isinstance(self.system.ranking, RecordedAnswers) else None
        incidents.update({} if external is None else external.incidents)
        stages = FrameCache(self.cache)
        ranked: dict[str, list[pl.DataFrame]] = {arm: [_NOTHING_RANKED] for arm in self.rankings}
        measured: dict[str, list[pl.DataFrame]] = {}
        facts: dict[str, pl.DataFrame] = {}
        ceilings = ceilings_among(self.arms, self.dataset) if self.rankings.keys() >= self.arms.keys() else {}
        for number, checkpoint in enumerate(self._asked(replayed.checkpoints())):
            incidents.update(checkpoint.incidents)
            for arm in self.rankings if checkpoint.queries else ():
                make = self._ranked(checkpoint, arm, stages, keys)
                is_shared = arm != SYSTEM_ARM
                key = keys.ranked(arm, number) if is_shared or not self.is_one_of_many else None
                frame, survived = stages.frame("ranked", key, make, in_memory=is_shared)
                ranked[arm].append(frame)
                incidents.update(survived)
            if not checkpoint.queries:
                for name, fact in {**FACTS, "evidence_text": self._evidence_text, **ceilings}.items():
                    make = _found(fact, checkpoint, queries)
                    facts[name], _ = stages.frame("facts", keys.fact(name), make, in_memory=True)
            answers = ranked[SYSTEM_ARM][-1] if checkpoint.queries else pl.concat(ranked[SYSTEM_ARM])
            for name, measure in self.measures.items():
                if not self._reads(measure, workspace, checkpoint):
                    continue
                for one in self.rankings if measure.of_arms else (None,):
                    found = answers if one is None else ranked[one][-1]
                    make = self._measured(checkpoint, measure, checkpoint.queries or queries, found, one)
                    key = keys.measured(name, number, one)
                    if measure.is_of_time and external is None:
                        make = self._timed_once(measure, workspace, make)
                    frame, survived = stages.frame("measured", key, make, in_memory=True)
                    rows = frame if one is None else frame.select(pl.lit(one).alias("arm"), pl.all())
                    measured.setdefault(name, []).append(rows)
                    incidents.update(survived)
            progress(len(checkpoint.queries))
        of_workspace = pl.lit(workspace).alias("workspace_id")
        return WorkspaceResult(
            workspace_id=workspace,
            ranked={arm: pl.concat(frames) for arm, frames in ranked.items()},
            measured={name: pl.concat(frames) for name, frames in measured.items()},
            documents=facts["documents"].select(of_workspace, pl.all()),
            evidence_text=facts["evidence_text"].select(of_workspace, pl.all()),
            reachable={arm: facts[arm] for arm in ceilings},
            decisions=facts["decisions"].select(of_workspace, pl.all()),
            incidents=incidents,
            contexts=checkpoint.contexts,
            widths=facts["widths"]["width"].to_list(),
            large_files=facts["large_files"].item(),
            keys={arm: key for arm in self.rankings if (key := keys.ranked(arm, 0)) is not None},
            external=external,
        )

    def _timed_once(self, measure: Measure, workspace: str, make: Callable[[], Made]) -> Callable[[], Made]:
        """Once for all points of a sweep that do the same work."""
        times = self.times
        if times is None or self.work is None:
            return make
        key = f"{self.work} {workspace} {measure.value_names()}"
        return lambda: times[key] if key in times else times.setdefault(key, make())

    def _identified_work(self) -> str | None:
        """What tells apart how long an answer takes: all settings but weights, rates, thresholds and others that may
        have a fraction, which change what is answered and not how much is done for it."""
        timing = [one for one in self.measures.values() if one.is_of_time]
        if self.times is None or not timing:
            return None
        parts = [self.system, self.replay, *timing]
        return _identified(lambda identity: [_without_fractions(identity.of(parts)), self.dataset.digest])

    def _asked(self, checkpoints: Iterator[ReplayCheckpoint]) -> Iterator[ReplayCheckpoint]:
        """The checkpoints at which a query is asked that is not left out, and the last."""
        for checkpoint in checkpoints:
            queries = [query for query in checkpoint.queries if self.asked is None or query.query_id in self.asked]
            if queries or not checkpoint.queries:
                yield replace(checkpoint, queries=queries)

    def _evidence_text(self, memory: Memory, queries: Sequence[Query]) -> pl.DataFrame:
        return evidence_text(readable_documents(memory, queries), queries, self.dataset)

    def _reads(self, measure: Measure, workspace: str, checkpoint: ReplayCheckpoint) -> bool:
        """Whether a measure reads the memory as it stands now."""
        if measure.subject != ("answers" if checkpoint.queries else "memory"):
            return False
        timed = measure.chosen(self.dataset.queries) if measure.is_of_time else None
        return timed is None or any(query.workspace_id == workspace for query in timed)

    def _ranked(
        self, checkpoint: ReplayCheckpoint, arm: str, stages: FrameCache, keys: "_StageKeys"
    ) -> Callable[[], Made]:
        acted = Counter[str]()

        def answers(memory: Memory) -> pl.DataFrame:
            if arm == SYSTEM_ARM and self.system.reinforcement.recalled:
                return memory.recall(checkpoint.queries, acted)
            ranking, counted = self.rankings[arm], acted if arm == SYSTEM_ARM else None
            if self.cache is None or keys.checkpoints is None or self.system.reinforcement.recalled:
                return memory.rank(checkpoint.queries, ranking, acted=counted)
            asked = tuple(query.query_id for query in checkpoint.queries)
            laid_out = ("batches", asked, contract_of(ranking).needs_vectors)
            if laid_out not in memory.live.derived:  # once for all arms and all points of a sweep
                memory.live.derived[laid_out] = memory.batches(checkpoint.queries, ranking)
            batches = memory.live.derived[laid_out]
            ranked_by = with_cached_pools(ranking, stages, keys.checkpoints)
            return memory.rank_batches(batches, checkpoint.queries, ranked_by, acted=counted)

        return _of_memory(checkpoint, answers, acted)

    def _measured(
        self,
        checkpoint: ReplayCheckpoint,
        measure: Measure,
        queries: Sequence[Query],
        ranked: pl.DataFrame,
        arm: str | None,
    ) -> Callable[[], Made]:
        def rows(memory: Memory) -> pl.DataFrame:
            of = arm or SYSTEM_ARM
            return measure.rows(MemoryReading(memory, queries, ranked, self.evidence, self.dataset, of))

        return _of_memory(checkpoint, rows)


def refuse_unmeasured(measures: Mapping[str, Measure]) -> None:
    """Refuse what is no measure, and two measures that give rows of one name.

    Raises:
        LcmError: naming it.
    """
    giver: dict[str, str] = {}
    for name, measure in measures.items():
        if not isinstance(measure, Measure):
            raise LcmError(
                f"measures.{name} is no measure: {type(measure).__name__} does not derive from eval.measures.measure."
                "Measure; name another in its _target_, or leave it out"
            )
        for value in measure.value_names():
            if giver.setdefault(value, name) != name:
                raise LcmError(
                    f"measures.{giver[value]} and measures.{name} both measure {value}: leave one of them out"
                )
            if ("/" in value) != measure.is_of_time:
                raise LcmError(f"measures.{name} gives {value!r}: names with a / are those of measures of time alone")


class _StageInputs:
    """What the stages of all workspaces depend on; None where something in them has no identity."""

    def __init__(self, evaluator: WorkspaceEvaluator) -> None:
        system = evaluator.system
        self.is_frozen = not system.reinforcement.recalled
        """Else answers depend on the answers before them, and only the checkpoints of the replay are kept."""
        self.checkpoints = _identified(lambda identity: _checkpoint_inputs(evaluator, identity))
        self.ranked = {arm: _identified(_of(ranking)) for arm, ranking in evaluator.rankings.items()}
        brought = [system.ranking.brought] if isinstance(system.ranking, BringsDocuments) else []
        self.facts = _identified(_of([REPORT_TOKENS, *brought]))
        self.measured: dict[str, str | None] = {}
        for name, measure in evaluator.measures.items():
            if measure.subject in ("answers", "memory"):
                parts = measure.depends_on(system)
                self.measured[name] = None if parts is None else _identified(_of([measure, REPORT_TOKENS, *parts]))


class _StageKeys:
    """Under which digests the stages of one workspace are kept; None = they are not."""

    def __init__(
        self, inputs: _StageInputs | None, workspace: str, queries: Sequence[Query], *, are_kept: bool = True
    ) -> None:
        self._inputs = inputs
        self._are_kept = are_kept
        """Whether answers are; else the memory that gives them is kept alone, and what tells of it."""
        self.checkpoints: str | None = None
        if inputs is not None and inputs.checkpoints is not None:
            scopes = [(query.query_id, query.scopes) for query in queries if query.scopes is not None]
            self.checkpoints = digest([inputs.checkpoints, workspace, *scopes], ())

    def ranked(self, arm: str, number: int) -> str | None:
        return self._of_answers(lambda inputs: inputs.ranked[arm], number) if self._are_kept else None

    def measured(self, name: str, number: int, arm: str | None) -> str | None:
        """Of a measure that reads arms, one for each of them."""
        key = self._of_answers(lambda inputs: inputs.measured[name], number) if self._are_kept else None
        if arm is None or key is None:
            return key
        of_arm = self.ranked(arm, number)
        return None if of_arm is None else digest([key, arm, of_arm], ())

    def fact(self, name: str) -> str | None:
        return self._of_answers(lambda inputs: inputs.facts, name)

    def _of_answers(self, chosen: Callable[[_StageInputs], str | None], *others: object) -> str | None:
        if self.checkpoints is None or self._inputs is None or not self._inputs.is_frozen:
            return None
        stage = chosen(self._inputs)
        return None if stage is None else digest([self.checkpoints, stage, *others], ())


def _identified(inputs: Callable[[Fingerprint], Any]) -> str | None:
    identity = Fingerprint({__name__})
    try:
        return digest(inputs(identity), identity.modules)
    except Unidentified:
        return None


def _without_fractions(told: Any) -> Any:
    """What tells a part from others, without its numbers that are not whole."""
    if isinstance(told, dict):
        return {name: _without_fractions(one) for name, one in told.items()}
    if isinstance(told, list):
        return [_without_fractions(one) for one in told]
    return "" if isinstance(told, str) and _FRACTION.fullmatch(told) else told


def _of(part: Any) -> Callable[[Fingerprint], Any]:
    return lambda identity: identity.of(part)


def _checkpoint_inputs(evaluator: WorkspaceEvaluator, identity: Fingerprint) -> Any:
    parts = {one.name: getattr(evaluator.system, one.name) for one in fields(evaluator.system)}
    del parts["ranking"]
    # How an assembly words what was said is counted; how it packs is not part of a checkpoint.
    shown = parts.pop("assembly")
    identity.modules |= {Memory.__module__, WorkspaceReplay.__module__, type(shown).__module__}
    worded = [type(shown).__qualname__, shown.shows_documents, getattr(shown, "is_shown_twice", None)]
    return [identity.of(parts), worded, identity.of(evaluator.replay), evaluator.dataset.digest]


def _of_memory(
    checkpoint: ReplayCheckpoint, read: Callable[[Memory], pl.DataFrame], acted: Mapping[str, int] | None = None
) -> Callable[[], Made]:
    """What is read of a memory, with what it survived meanwhile, and the slots of its ranking that `read` counts."""

    def make() -> Made:
        memory = checkpoint.open()
        before = Counter(memory.incidents)
        rows = read(memory)
        of_slots = Counter({f"{ACTED}{slot}": times for slot, times in (acted or {}).items()})
        return rows, memory.incidents - before + of_slots

    return make


def _found(fact: Fact, checkpoint: ReplayCheckpoint, queries: Sequence[Query]) -> Callable[[], Made]:
    return lambda: (fact(checkpoint.open(), queries), Counter())
