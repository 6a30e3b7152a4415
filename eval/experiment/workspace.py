"""What one workspace answered, and what became of what it heard."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import polars as pl

from eval.cache.fingerprint import Fingerprint, Unidentified, digest
from eval.cache.frame_cache import FrameCache, Made
from eval.cache.pools import with_kept_pools
from eval.cache.stage_cache import StageCache
from eval.dataset.dataset import Dataset
from eval.measures.compression import compressed
from eval.measures.latency import Latency
from eval.measures.retention import RETENTION_SCHEMA, Retention
from eval.replay.workspace_replay import Replay, ReplayCheckpoint, WorkspaceReplay
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols import Embedder, Ranker
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA
from lcm.token_estimator.utf16_units import Utf16Units

SYSTEM_ARM = "system"
REPORT_TOKENS = Utf16Units()
"""The one estimator behind every reported token count, whatever the system under test uses."""
RUN_SCHEMA: dict[str, pl.DataType] = {
    "arm": pl.String(),
    "workspace_id": pl.String(),
    "query_id": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "index_tier": pl.Int64(),
}


@dataclass(frozen=True, slots=True)
class WorkspaceResult:
    """What one workspace answered, and what became of what it heard."""

    workspace_id: str
    ranked: Mapping[str, pl.DataFrame]
    """Arm -> rows of `RANKED_SCHEMA`."""
    retained: pl.DataFrame
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, kind, is_durable, session_id, tokens."""
    decisions: pl.DataFrame
    compression: pl.DataFrame
    incidents: Counter[str]
    widths: Sequence[int]
    """Of the vector index, where it has several."""
    samples: Sequence[dict[str, float]]
    """Milliseconds of live queries."""
    keys: Mapping[str, str]
    """Arm -> the digest of all that its rows depend on; a missing arm has none."""

    def run(self, arm: str) -> pl.DataFrame:
        """Rows of `RUN_SCHEMA`."""
        named = {"arm": pl.lit(arm), "workspace_id": pl.lit(self.workspace_id)}
        return self.ranked[arm].with_columns(**named).select(list(RUN_SCHEMA))


@dataclass(frozen=True, slots=True)
class WorkspaceEvaluator:
    """Asks the workspaces of a dataset, one at a time; what was asked before is found in the cache."""

    dataset: Dataset
    system: System
    replay: Replay
    rankings: Mapping[str, Ranker]
    """Arm -> what it ranks with; the system's own stands under `SYSTEM_ARM`."""
    retention: Retention
    latency: Latency
    live_embedder: Embedder
    cache: StageCache | None = None
    evidence: Mapping[str, Sequence[str]] = field(init=False)
    """Query id -> ids of its relevant messages."""
    timed: frozenset[str] = field(init=False)
    """Ids of the queries whose latency is measured."""
    inputs: "_Inputs | None" = field(init=False)
    """What the stages depend on; None = nothing is kept."""

    def __post_init__(self) -> None:
        evidence = (
            self.dataset.qrels.filter(pl.col("relevance") > 0)
            .group_by("query_id", maintain_order=True)
            .agg("message_id")
            .iter_rows()
        )
        object.__setattr__(self, "evidence", dict(evidence))
        timed = self.latency.chosen(self.dataset.queries)
        object.__setattr__(self, "timed", frozenset(query.query_id for query in timed))
        object.__setattr__(self, "inputs", None if self.cache is None else _Inputs(self))

    def answers(self, workspace: str, asked: Callable[[int], None]) -> WorkspaceResult:
        """Let a memory hear a workspace and ask it; `asked` is told how many queries were answered, as they are."""
        transcripts = [t for t in self.dataset.transcripts if t.workspace_id == workspace]
        queries = [query for query in self.dataset.queries if query.workspace_id == workspace]
        keys = _Keys(self.inputs, workspace)
        is_frozen = not self.system.reinforcement.recalled
        replayed = WorkspaceReplay(self.system, self.replay, transcripts, queries, self.cache, keys.heard, is_frozen)
        kept, incidents = FrameCache(self.cache), Counter[str]()
        ranked: dict[str, list[pl.DataFrame]] = {arm: [] for arm in self.rankings}
        retained = [pl.DataFrame(schema=RETENTION_SCHEMA)]
        live = [query for query in queries if query.query_id in self.timed]
        others = [query for query in queries if query.query_id not in self.timed]
        facts: dict[str, pl.DataFrame] = {}
        samples: list[dict[str, float]] = []
        for number, moment in enumerate(replayed.moments()):
            incidents.update(moment.incidents)
            if not moment.queries:
                facts = {
                    name: kept.frame("facts", keys.fact(name), _told(name, moment), at_hand=True)[0] for name in _FACTS
                }
                samples = self.latency.measure(moment.open(), self.live_embedder, live, others) if live else []
                continue
            for arm in self.rankings:
                make = self._ranked(moment, arm, kept, keys)
                frame, survived = kept.frame("ranked", keys.ranked(arm, number), make, at_hand=arm != SYSTEM_ARM)
                ranked[arm].append(frame)
                incidents.update(survived)
            make = self._retained(moment, ranked[SYSTEM_ARM][-1])
            frame, survived = kept.frame("retained", keys.retained(number), make, at_hand=True)
            retained.append(frame)
            incidents.update(survived)
            asked(len(moment.queries))
        named = pl.lit(workspace).alias("workspace_id")
        return WorkspaceResult(
            workspace_id=workspace,
            ranked={arm: pl.concat([pl.DataFrame(schema=RANKED_SCHEMA), *frames]) for arm, frames in ranked.items()},
            retained=pl.concat(retained),
            documents=facts["documents"].select(named, pl.all()),
            decisions=facts["decisions"].select(named, pl.all()),
            compression=facts["compression"].select(named, pl.all()),
            incidents=incidents,
            widths=facts["widths"]["width"].to_list(),
            samples=samples,
            keys={arm: key for arm in self.rankings if (key := keys.ranked(arm, 0)) is not None},
        )

    def _ranked(self, moment: ReplayCheckpoint, arm: str, kept: FrameCache, keys: "_Keys") -> Callable[[], Made]:
        def made() -> Made:
            memory, ranking = moment.open(), self.rankings[arm]
            before = Counter(memory.incidents)
            if arm == SYSTEM_ARM and self.system.reinforcement.recalled:
                frame = memory.recall(moment.queries)
            else:
                if keys.heard is not None:
                    ranking = with_kept_pools(ranking, kept, keys.heard)
                frame = memory.rank(moment.queries, ranking)
            return frame, memory.incidents - before

        return made

    def _retained(self, moment: ReplayCheckpoint, ranked: pl.DataFrame) -> Callable[[], Made]:
        def made() -> Made:
            memory = moment.open()
            before = Counter(memory.incidents)
            values = self.retention.values(memory, moment.queries, self.evidence, ranked)
            return values, memory.incidents - before

        return made


class _Inputs:
    """What the stages of all workspaces depend on; None where something in them has no identity."""

    def __init__(self, evaluator: WorkspaceEvaluator) -> None:
        self.is_frozen = not evaluator.system.reinforcement.recalled
        """Else answers depend on the answers before them, and only what was heard is kept."""
        self.heard = _identified(lambda identity: _heard(evaluator, identity))
        self.ranked = {arm: _identified(_of(ranking)) for arm, ranking in evaluator.rankings.items()}
        shown = [evaluator.retention, evaluator.system.assembly]
        if evaluator.system.assembly.shows_documents:
            shown.append(evaluator.system.ranking)
        self.retained = _identified(_of(shown, Retention.__module__))
        self.facts = _identified(_of(REPORT_TOKENS, compressed.__module__))


class _Keys:
    """Under which digests the stages of one workspace are kept; None = they are not."""

    def __init__(self, inputs: _Inputs | None, workspace: str) -> None:
        self._inputs = inputs
        self.heard: str | None = None
        if inputs is not None and inputs.heard is not None:
            self.heard = digest([inputs.heard, workspace], ())

    def ranked(self, arm: str, moment: int) -> str | None:
        return self._of_answers(lambda inputs: inputs.ranked[arm], moment)

    def retained(self, moment: int) -> str | None:
        return self._of_answers(lambda inputs: inputs.retained, moment)

    def fact(self, name: str) -> str | None:
        return self._of_answers(lambda inputs: inputs.facts, name)

    def _of_answers(self, chosen: Callable[[_Inputs], str | None], *others: object) -> str | None:
        if self.heard is None or self._inputs is None or not self._inputs.is_frozen:
            return None
        stage = chosen(self._inputs)
        return None if stage is None else digest([self.heard, stage, *others], ())


def _identified(inputs: Callable[[Fingerprint], Any]) -> str | None:
    identity = Fingerprint({__name__})
    try:
        return digest(inputs(identity), identity.modules)
    except Unidentified:
        return None


def _of(part: Any, *modules: str) -> Callable[[Fingerprint], Any]:
    def inputs(identity: Fingerprint) -> Any:
        identity.modules.update(modules)
        return identity.of(part)

    return inputs


def _heard(evaluator: WorkspaceEvaluator, identity: Fingerprint) -> Any:
    parts = {one.name: getattr(evaluator.system, one.name) for one in fields(evaluator.system)}
    del parts["ranking"]
    # How an assembly words what was said is counted; how it packs is not heard.
    shown = parts.pop("assembly")
    identity.modules |= {Memory.__module__, WorkspaceReplay.__module__, type(shown).__module__}
    worded = [type(shown).__qualname__, shown.shows_documents, getattr(shown, "rendering", None)]
    return [identity.of(parts), worded, identity.of(evaluator.replay), evaluator.dataset.digest]


def _told(name: str, moment: ReplayCheckpoint) -> Callable[[], Made]:
    return lambda: (_FACTS[name](moment.open()), Counter())


def _reported(memory: Memory) -> pl.DataFrame:
    documents = memory.documents
    tokens = pl.Series("tokens", REPORT_TOKENS.count(documents["text"].to_list()), dtype=pl.Int64)
    told = ("document_id", "source_message_ids", "kind", "is_durable", "session_id")
    return documents.select(*told).with_columns(tokens)


def _widths(memory: Memory) -> pl.DataFrame:
    return pl.DataFrame({"width": pl.Series(getattr(memory.vector_index, "widths", ()), dtype=pl.Int64)})


_FACTS: Mapping[str, Callable[[Memory], pl.DataFrame]] = {
    "documents": _reported,
    "decisions": lambda memory: memory.store.decisions(),
    "compression": lambda memory: compressed(memory.store, REPORT_TOKENS),
    "widths": _widths,
}
"""What is told of a memory that has heard all."""
