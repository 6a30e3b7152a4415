"""What generated questions are worth: do they put memory systems into the order that questions of people do?

Fourteen systems answer, on each dataset, the questions of people and generated ones of every kind, over the same
messages. Kendall's tau-b between both orders, by recall@10 and by nDCG@10, each with a percentile bootstrap interval
over the questions of both sides; beside it the tau between two random halves of the questions of people: what questions
of the same making agree by.

    LCM_DATASETS_DIR=... python experiments/generated_questions.py FOLDER [DATASET ...]
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import kendalltau

from eval.dataset.beam import Beam
from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.dataset.locomo import Locomo
from eval.dataset.qmsum import Qmsum
from eval.questions.kinds import KnownItem, LaterMention, SelfRetrieval, Successor, ToolResult
from eval.questions.making import Kind, QuestionSet, make_questions
from eval.questions.quotation import overlap
from lcm.records.conversation import Transcript
from lcm.records.query import Query
from lcm.transcript.reading import read_transcripts
from pipelines.config.composition import composed
from pipelines.steps.point import experiment_of

KINDS: Mapping[str, Kind] = {
    "known_item": KnownItem(n=200),
    "successor": Successor(n=200),
    "self_retrieval": SelfRetrieval(n=200),
    "later_mention": LaterMention(n=200),
    "tool_result": ToolResult(n=200),
}
PEOPLE = "people"
MIXES: Mapping[str, Sequence[str]] = {
    "known_item and successor": ("known_item", "successor"),
    "these and later_mention": ("known_item", "successor", "later_mention"),
    "all kinds": tuple(KINDS),
}
"""Kinds taken together, all weighing alike."""
RUNS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "hybrid": (("system=hybrid",), ("bm25", "dense", "last_n")),
    "hashing": (("system=hybrid", "embedder=hashing"), ("dense",)),
    "token_sum": (("system=hybrid", "embedder=token_sum"), ("dense",)),
    "reciprocal_rank": (("system=hybrid", "fusion=reciprocal_rank"), ()),
    "mostly_words": (("system=hybrid", "fusion.dense_weight=0.2"), ()),
    "neighbours": (("system=neighbours",), ()),
    "lancedb_pro": (("system=lancedb_pro",), ()),
    "libravdb": (("system=libravdb", "admission.promotion=always", "admission.roles=[user,assistant,tool]"), ()),
    "unified": (("system=unified",), ()),
}
"""Name -> overrides, and the control arms that count as systems too."""
COMMON = ("tracking=none", "measures.latency.queries=0", "measures.retention.budgets=[]")
MEASURES = ("recall@10", "nDCG@10")
RESAMPLES = 2000
VALUES = ("system", "query_id", "measure", "value")


def main(folder: Path, names: Sequence[str]) -> None:
    for name, load in DATASETS.items():
        if names and name not in names:
            continue
        dataset = load()
        made = make_questions(dataset.transcripts, KINDS, seed=0)
        values = answered(folder / name, dataset, made)
        report(name, dataset, made, values)


def agent_questions() -> Dataset:
    """In the workspaces that their description names."""
    root = Path(os.environ["LCM_DATASETS_DIR"])
    transcripts: dict[str, list[Transcript]] = {}
    queries, qrels, read = [], [], dict[str, list[Transcript]]()
    for file in ("pi", "tau", "mixed"):
        for line in (root / "agent_questions" / f"{file}.jsonl").read_text().splitlines():
            entry = json.loads(line)
            source = entry["source"]
            workspace = "codex" if entry["question_id"].startswith("codex-dev") else source
            if source not in read:
                found = read_transcripts(root / "agent_transcripts" / source, workspace_id=workspace)
                read[source] = found
                transcripts.setdefault(workspace, []).extend(found)
            queries.append((entry["question_id"], entry["question"], workspace, entry["category"]))
            qrels += [(entry["question_id"], message_id, 1) for message_id in entry["message_ids"]]
    flat = tuple(one for of_one in transcripts.values() for one in of_one)
    end = max(m.created_at for one in flat for m in one.messages if m.created_at is not None)
    asked = tuple(Query(query_id, text, end, workspace, category) for query_id, text, workspace, category in queries)
    frame = pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row")
    return Dataset("agent_questions", "unit=message", "0" * 64, flat, asked, frame)


DATASETS = {
    "locomo": lambda: Locomo().load(),
    "qmsum": lambda: Qmsum().load(),
    "beam": lambda: Beam().load(),
    "agent_questions": agent_questions,
}
"""Those with questions of people."""


def answered(folder: Path, dataset: Dataset, made: QuestionSet) -> pl.DataFrame:
    """Rows system, query_id, measure, value, of people's questions and generated ones; what was run before is read."""
    end = max(query.asked_at for query in dataset.queries)
    later = frozenset(one.question_id for one in made.questions if one.generated == "later_mention")
    found = []
    for system, (overrides, arms) in RUNS.items():
        for part in ("at the end", "in between"):
            asked = [one for one in made.questions if (one.question_id in later) == (part == "in between")]
            if part == "in between" and not asked:
                continue
            target = folder / f"{system} {part}.parquet"
            if not target.is_file():
                people = part == "at the end"
                both = with_questions(dataset, replace(made, questions=tuple(asked)), end, people=people)
                chosen = [f"arms={'controls' if arms else 'none'}", *COMMON, *overrides]
                config = composed(chosen)
                outcome = experiment_of(config, both).run(lambda *_: None)
                rows = outcome.values.filter(pl.col("measure").is_in(MEASURES), pl.col("arm").is_in(["system", *arms]))
                named = {"system": system, **{arm: arm if system == "hybrid" else f"{system} {arm}" for arm in arms}}
                target.parent.mkdir(parents=True, exist_ok=True)
                rows.with_columns(system=pl.col("arm").replace_strict(named)).select(*VALUES).write_parquet(target)
                print(f"{folder.name}: {target.stem}", file=sys.stderr, flush=True)
            found.append(pl.read_parquet(target))
    return pl.concat(found)


def with_questions(dataset: Dataset, made: QuestionSet, end: object, *, people: bool) -> Dataset:
    workspace = {m.message_id: one.workspace_id for one in dataset.transcripts for m in one.messages}
    last = {query.workspace_id: query.asked_at for query in dataset.queries}
    queries, qrels = [], []
    for one in made.questions:
        ids = one.evidence[0].message_ids
        where = workspace[ids[0]]
        is_later = one.generated == "later_mention"
        asked_at = one.asked_at if is_later else last.get(where, end)
        queries.append(Query(one.question_id, one.question, asked_at, where, one.category))
        qrels += [(one.question_id, message_id, 1) for message_id in ids]
    generated = pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row")
    digest = hashlib.sha256(repr((dataset.digest, queries, people)).encode()).hexdigest()
    return replace(
        dataset,
        digest=digest,
        queries=(*(dataset.queries if people else ()), *queries),
        qrels=pl.concat([dataset.qrels, generated]) if people else generated,
        session_qrels=dataset.session_qrels if people else dataset.session_qrels.clear(),
        references=dataset.references.clear(),
        options=dataset.options.clear(),
        generated=", ".join(KINDS),
    )


def report(name: str, dataset: Dataset, made: QuestionSet, values: pl.DataFrame) -> None:
    of = {one.question_id: str(one.generated) for one in made.questions}
    tables = {measure: _matrix(values.filter(measure=measure)) for measure in MEASURES}
    systems = tables["recall@10"].columns[1:]
    print(f"\n## {name}: {len(systems)} systems\n")
    print(f"| system | {' | '.join(f'{measure}, {PEOPLE}' for measure in MEASURES)} | {' | '.join(KINDS)} |")
    print(f"|---|{'--:|' * (len(MEASURES) + len(KINDS))}")
    groups = {measure: _groups(table, of) for measure, table in tables.items()}
    for number, system in enumerate(systems):
        cells = [f"{groups[measure][PEOPLE][:, number].mean():.3f}" for measure in MEASURES]
        cells += [_mean(groups["recall@10"].get(kind), number) for kind in KINDS]
        print(f"| {system} | {' | '.join(cells)} |")
    print(f"\n| questions | n | overlap | {' | '.join(f'tau by {measure}' for measure in MEASURES)} |")
    print(f"|---|--:|--:|{'---|' * len(MEASURES)}")
    people = groups["recall@10"][PEOPLE]
    texts = {m.message_id: m.content for one in dataset.transcripts for m in one.messages}
    shares = [
        share
        for query in dataset.queries
        if (ids := dataset.evidence().get(query.query_id))
        and (share := overlap(query.text, [texts[i] for i in ids])) is not None
    ]
    halves = [_halves(groups[measure][PEOPLE]) for measure in MEASURES]
    print(f"| {PEOPLE}, half against half | {len(people)} | {np.mean(shares):.2f} | {' | '.join(halves)} |")
    overlaps = {one.kind: one.overlap for one in made.reports}
    for kind in (*KINDS, *MIXES):
        if kind not in groups["recall@10"]:
            print(f"| {kind} | 0 | - | {' | '.join('-' for _ in MEASURES)} |")
            continue
        cells = [_tau(groups[measure][PEOPLE], groups[measure][kind]) for measure in MEASURES]
        share = f"{overlaps[kind]:.2f}" if overlaps.get(kind) is not None else "-"
        print(f"| {kind} | {len(groups['recall@10'][kind])} | {share} | {' | '.join(cells)} |", flush=True)


def _matrix(values: pl.DataFrame) -> pl.DataFrame:
    """A row for each query, a column for each system."""
    return values.pivot("system", index="query_id", values="value").sort("query_id")


def _groups(table: pl.DataFrame, of: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Whose questions -> their values, shape (questions, systems)."""
    kinds = [of.get(query_id, PEOPLE) for query_id in table["query_id"]]
    rows = table.drop("query_id").to_numpy()
    found = {kind: rows[[one == kind for one in kinds]] for kind in dict.fromkeys(kinds)}
    for mix, kinds_of_it in MIXES.items():
        parts = [found[kind] for kind in kinds_of_it if kind in found]
        most = max(map(len, parts))
        found[mix] = np.concatenate([part[np.arange(most) % len(part)] for part in parts])
    return found


def _tau(one: np.ndarray, other: np.ndarray) -> str:
    """Kendall's tau-b between the means of both, with its interval."""
    chance = np.random.default_rng(0)
    drawn = [kendalltau(_drawn(one, chance), _drawn(other, chance)).statistic for _ in range(RESAMPLES)]
    low, high = np.nanpercentile(drawn, (2.5, 97.5))
    return f"{kendalltau(one.mean(axis=0), other.mean(axis=0)).statistic:.2f} [{low:.2f} {high:.2f}]"


def _drawn(rows: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    return rows[chance.integers(0, len(rows), len(rows))].mean(axis=0)


def _halves(rows: np.ndarray) -> str:
    """The same between two halves of one set, drawn anew each time: the median and the middle 95 %."""
    chance = np.random.default_rng(0)
    taus = []
    for _ in range(RESAMPLES):
        order = chance.permutation(len(rows))
        first, second = np.array_split(order, 2)
        taus.append(kendalltau(rows[first].mean(axis=0), rows[second].mean(axis=0)).statistic)
    low, middle, high = np.nanpercentile(taus, (2.5, 50, 97.5))
    return f"{middle:.2f} [{low:.2f} {high:.2f}]"


def _mean(rows: np.ndarray | None, number: int) -> str:
    return "-" if rows is None else f"{rows[:, number].mean():.3f}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
