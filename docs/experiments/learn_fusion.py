"""Learn the weights of `fusion=unified`: a linear model over the columns that the stages of `ranking=unified` make.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/learn_fusion.py [--beside DATASET ...]

Replays the conversations through the real components, keeps every document's evidence for every question, and fits by
leave-one-conversation-out. Prints, for the evidence as it was published and as it was repaired, recall at 5 and 10 with
95 % percentile bootstrap intervals over questions, held out and fitted whole, by category; what each family of evidence
is worth, paired; and the YAML of the weights that all conversations together give.

Loss of a question: over its evidence the mean of -ln(e^s / (e^s + sum of e^s over all that is none)), times the number
of its turns to the power of .4, plus l2 times the sum of squared weights of columns scaled to unit deviation.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from omegaconf import DictConfig
from scipy.optimize import minimize
from scipy.stats import permutation_test
from system_parts import COMMON, place, run

from eval.dataset.dataset import Dataset
from eval.significance import bootstrap_means
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.protocols.retrieval import Batch
from lcm.retrieval.embedder.kept import kept
from lcm.retrieval.ranking.pipeline import Ranking
from pipelines.config import building, composition

Numbers = npt.NDArray[np.float64]
L2 = 0.02
POWER = 0.4
STEPS = 60
HARD = 150
"""Documents of a question that are learnt from besides its evidence: the best by the plain sum of three scores."""
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "words": ("words", "words_share", "words_covered"),
    "words of the turns around": (
        "words_window", "words_wide_window", "words_before", "words_behind", "words_after_question",
    ),
    "vectors": ("dense_score", "meaning", "meaning_gap"),
    "vectors of the turns around": ("meaning_window", "meaning_wide_window"),
    "session": ("words_session", "meaning_session", "alike_session"),
    "words alike": ("alike", "alike_share", "alike_behind", "alike_sum"),
    "speaker": ("asked_speaks", "other_speaks"),
    "time named in the question": ("said_then",),
    "words of time": ("tells_time", "told_when_asked"),
    "form": ("form_length", "form_rarity", "form_names", "form_first_person", "form_question"),
    "form of a chat": ("chat_length", "chat_rarity", "chat_question", "user_speaks"),
}  # fmt: skip
RIVALS: Mapping[str, Sequence[str]] = {
    "default": [],
    **{f"system={name}": [f"system={name}"] for name in ("neighbours", "lancedb_pro", "libravdb", "lossless_claw")},
}
COLUMNS = tuple(column for columns in FAMILIES.values() for column in columns)


@dataclass(slots=True)
class Recorder:
    """A stage that keeps what passes."""

    columns: Sequence[str]
    frames: list[pl.DataFrame] = field(default_factory=list)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        self.frames.append(frame.select("query_id", "document_id", *(pl.col(c).cast(pl.Float32) for c in self.columns)))
        return frame.with_columns(score=pl.lit(0.0))


@dataclass(frozen=True, slots=True)
class Questions:
    """Evidence laid out: the rows of one question stand together."""

    values: npt.NDArray[np.float32]
    """Shape (rows, columns)."""
    questions: npt.NDArray[np.int64]
    """Of each row."""
    targets: Mapping[str, Numbers]
    """Judgements -> 1 for each row that is evidence, else 0."""
    conversations: npt.NDArray[np.int64]
    """Of each question."""
    categories: npt.NDArray[np.str_]
    """Of each question."""
    ids: Sequence[str]
    """Of each question."""
    is_hard: npt.NDArray[np.bool_]
    """Of each row: among the `HARD` best of its question by a plain sum, before anything is learnt."""

    def rows_of(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = chosen[self.questions]
        return found


def collected(
    overrides: Sequence[str],
    judged_by: Mapping[str, Sequence[str]],
    system: Sequence[str] = ("system=unified", "fusion=learnt"),
    columns: Sequence[str] = COLUMNS,
    plain: Sequence[str] = ("words", "meaning", "alike"),
) -> Questions:
    """Every document's evidence for every question.

    Args:
        overrides: which dataset.
        judged_by: judgements -> overrides that choose them.
        system: what makes the evidence.
        columns: of the evidence.
        plain: those whose sum says which documents are hard.
    """
    config = composition.composed([*COMMON, *system, *overrides])
    datasets = {
        name: building.build(composition.composed([*COMMON, *overrides, *more]), "dataset").load()
        for name, more in judged_by.items()
    }
    frames, documents, place = _recorded(config, next(iter(datasets.values())), columns)
    frame = pl.concat(frames).join(documents, on=["query_id", "document_id"], how="inner", maintain_order="left")
    ids = frame["query_id"].unique(maintain_order=True)
    number = {query_id: i for i, query_id in enumerate(ids)}
    dataset = next(iter(datasets.values()))
    queries = {query.query_id: query for query in dataset.queries}
    targets = {}
    for name, judged in datasets.items():
        gold = judged.qrels.filter(pl.col("relevance") > 0).select("query_id", "message_id", gold=pl.lit(1.0))
        found = frame.select("query_id", "message_id").join(
            gold, on=["query_id", "message_id"], how="left", maintain_order="left"
        )
        targets[name] = found["gold"].fill_null(0.0).to_numpy()
    of_question = np.array([number[query_id] for query_id in frame["query_id"]])
    return Questions(
        frame.select(columns).to_numpy(),
        of_question,
        targets,
        np.array([place[queries[query_id].workspace_id] for query_id in ids]),
        np.array([queries[query_id].category or "" for query_id in ids]),
        ids.to_list(),
        ranks(of_question, frame.select(pl.sum_horizontal(*plain)).to_series().to_numpy()) < HARD,
    )


def _recorded(
    config: DictConfig, dataset: Dataset, columns: Sequence[str]
) -> tuple[list[pl.DataFrame], pl.DataFrame, dict[str, int]]:
    system: System = building.build(config, "memory")
    ranking = system.ranking
    assert isinstance(ranking, Ranking)
    evidence = dict(takewhile(lambda item: item[0] != "fusion", ranking.stages.items()))
    replay = building.build(config, "replay")
    recorder, documents = Recorder(columns), []
    workspaces = list(dict.fromkeys(transcript.workspace_id for transcript in dataset.transcripts))
    for workspace in workspaces:
        transcripts = [t for t in dataset.transcripts if t.workspace_id == workspace]
        queries = [query for query in dataset.queries if query.workspace_id == workspace]
        system_here: Any = System(kept(system.embedder), *_parts(system))
        with Memory.open(system_here) as memory:
            for asked in replay.play(memory, transcripts, queries):
                memory.rank(asked, Ranking(ranking.source, {**evidence, "record": recorder}))
            sources = memory.documents.select("document_id", message_id=pl.col("source_message_ids").list.first())
            documents.append(pl.DataFrame({"query_id": [q.query_id for q in queries]}).join(sources, how="cross"))
    return recorder.frames, pl.concat(documents), {workspace: i for i, workspace in enumerate(workspaces)}


def _parts(system: System) -> list[Any]:
    return [system.vector_index, system.text_index, system.token_estimator, system.extraction, system.ranking]


def fitted(
    data: Sequence[tuple[Questions, npt.NDArray[np.bool_], float]], judged: str, columns: Sequence[int]
) -> Numbers:
    """The weights of columns.

    Args:
        data: questions, which of them to learn from, and what one of them weighs.
        judged: which judgements to learn from; the first, where a dataset lacks them.
        columns: numbers of those to use.
    """
    values, targets, groups, weights, first = [], [], [], [], 0
    for questions, chosen, weight in data:
        target = questions.targets.get(judged, next(iter(questions.targets.values())))
        counts = np.bincount(questions.questions, target, len(chosen))
        rows = questions.rows_of(chosen & (counts > 0)) & ((target > 0) | questions.is_hard)
        values.append(questions.values[rows][:, columns])
        targets.append(target[rows])
        groups.append(questions.questions[rows] + first)
        share = weight * np.where(counts > 0, np.maximum(counts, 1) ** (POWER - 1), 0)
        weights.append(share[questions.questions[rows]] * target[rows])
        first += len(chosen)
    x, is_none, weight = np.concatenate(values), np.concatenate(targets) == 0, np.concatenate(weights)
    group = np.concatenate(groups)
    scale = x.std(axis=0)
    scale[scale < 1e-6] = 1.0
    x = x / scale
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    segment = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(group)]))
    total = sum(weight_of * chosen.sum() for _, chosen, weight_of in data)

    def loss(w: Numbers) -> tuple[float, Numbers]:
        scores = (x @ w.astype(np.float32)).astype(np.float64)
        others = np.where(is_none, scores, -np.inf)
        highest = np.maximum.reduceat(others, starts)
        shares = np.exp(others - highest[segment])
        sums = np.add.reduceat(shares, starts)
        margin = (highest + np.log(sums))[segment] - scores
        pull = weight / (1 + np.exp(-margin))
        slope = np.add.reduceat(pull, starts)[segment] * shares / sums[segment] - pull
        value = float((weight * np.logaddexp(0, margin)).sum() / total + L2 * (w @ w))
        return value, (x.T @ slope.astype(np.float32)).astype(np.float64) / total + 2 * L2 * w

    found = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x / scale, dtype=np.float64)


def held_out(
    questions: Questions, judged: str, columns: Sequence[int], beside: Sequence[tuple[Questions, float]]
) -> Numbers:
    """Scores of every row by weights that were learnt without its conversation."""
    scores = np.zeros(len(questions.questions))
    for conversation in np.unique(questions.conversations):
        away = questions.conversations == conversation
        data = [(questions, ~away, 1.0), *((other, np.ones(len(other.conversations), bool), w) for other, w in beside)]
        weights = fitted(data, judged, columns)
        rows = questions.rows_of(away)
        scores[rows] = questions.values[rows][:, columns] @ weights
    return scores


def recalls(questions: Questions, scores: Numbers, judged: str, cutoff: int) -> Numbers:
    """Of each question the share of its evidence among the first `cutoff`; NaN without any."""
    target = questions.targets[judged]
    counts = np.bincount(questions.questions, target, len(questions.conversations))
    found = target * (ranks(questions.questions, scores) < cutoff)
    hits = np.bincount(questions.questions, found, len(counts))
    return np.where(counts > 0, hits / np.maximum(counts, 1), np.nan)


def ranks(questions: npt.NDArray[np.int64], scores: Numbers) -> npt.NDArray[np.int64]:
    """Of each row, from 0, among those of its question."""
    order = np.lexsort((-scores, questions))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(len(scores)) - np.searchsorted(questions[order], questions[order])
    return found


def compared(questions: Questions, scores: Numbers, folder: Path) -> None:
    """The presets and arms beside the held-out scores: paired differences, sign-flip tests, Holm over all of them."""
    found = []
    for judged in questions.targets:
        common = ("arms=controls", *COMMON[1:], "dataset.categories=[1,2,3,4]", f"dataset.evidence={judged}")
        values = recalls(questions, scores, judged, 10)
        own = pl.DataFrame({"query_id": questions.ids, "own": values}).filter(pl.col("own").is_not_nan())
        rivals = {}
        for name, overrides in RIVALS.items():
            rivals[name] = run(folder / judged, "locomo", name, [*common, *overrides])
        values_of_arms = pl.read_parquet(place(folder / judged, "default") / "per_query.parquet").filter(
            measure="recall@10"
        )
        for arm in ("bm25", "dense", "last_n"):
            rivals[f"arm {arm}"] = values_of_arms.filter(arm=arm).select("query_id", pl.col("value").alias("recall@10"))
        for name, rival in rivals.items():
            paired = own.join(rival.select("query_id", "recall@10"), on="query_id", how="inner")
            assert len(paired) == len(own) == len(rival), "the same questions are judged"
            gain = (paired["own"] - paired["recall@10"]).to_numpy()
            test = permutation_test(
                (gain,), np.mean, permutation_type="samples", n_resamples=9999, vectorized=True, rng=0
            )
            found.append((name, judged, rival["recall@10"].mean(), gain, float(test.pvalue)))
    order = sorted(range(len(found)), key=lambda i: found[i][4])
    corrected, highest = [0.0] * len(found), 0.0
    for position, i in enumerate(order):
        highest = corrected[i] = min(1.0, max(highest, found[i][4] * (len(found) - position)))
    print("\n| rival | evidence | its recall@10 | gain | p, Holm over all rows |\n|---|---|---|---|---|")
    for (name, judged, level, gain, _), p in zip(found, corrected, strict=True):
        print(f"| {name} | {judged} | {level:.3f} | {told(gain)} | {p:.4f} |", flush=True)


def told(values: Numbers) -> str:
    kept_values = values[~np.isnan(values)][:, np.newaxis]
    low, high = bootstrap_means(kept_values, resamples=2000, confidence=0.95, seed=0)
    return f"{kept_values.mean():.3f} [{low[0]:.3f}, {high[0]:.3f}]"


def report(questions: Questions, label: str, scores: Numbers) -> None:
    for judged in questions.targets:
        at_5, at_10 = (recalls(questions, scores, judged, k) for k in (5, 10))
        names = dict.fromkeys(questions.categories[~np.isnan(at_10)])
        parts = (f"{name} {np.nanmean(at_10[questions.categories == name]):.3f}" for name in names)
        print(f"| {label} | {judged} | {told(at_5)} | {told(at_10)} | {', '.join(parts)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", nargs="*", default=["beam"], help="datasets to learn from beside LoCoMo")
    parser.add_argument("--weight", type=float, default=1.0, help="what one of their questions weighs")
    parser.add_argument("--folder", default="runs/learn_fusion", help="where the runs of presets and arms are kept")
    arguments = parser.parse_args()
    judged_by = {"original": ["dataset.evidence=original"], "repaired": ["dataset.evidence=repaired"]}
    locomo = collected(["dataset=locomo", "dataset.categories=[1,2,3,4]"], judged_by)
    beside = [(collected([f"dataset={name}"], {name: []}), arguments.weight) for name in arguments.beside]
    folder = Path(arguments.folder).resolve()
    everything = list(range(len(COLUMNS)))
    print("| fit | evidence | recall@5 | recall@10 | recall@10 by category |\n|---|---|---|---|---|")
    best = held_out(locomo, "original", everything, beside)
    report(locomo, "one conversation held out", best)
    data = [(q, np.ones(len(q.conversations), bool), w) for q, w in [(locomo, 1.0), *beside]]
    weights = fitted(data, "original", everything)
    report(locomo, "fitted to all", locomo.values @ weights)
    for other, _ in beside:
        (name,) = other.targets
        rest = [(locomo, 1 / arguments.weight), *((q, w / arguments.weight) for q, w in beside if q is not other)]
        report(other, f"{name}, one conversation held out", held_out(other, name, everything, rest))
        report(other, f"{name}, fitted to all", other.values @ weights)
    compared(locomo, best, folder)
    print("\n| without | recall@5 | recall@10 |\n|---|---|---|")
    for family, columns in FAMILIES.items():
        left = [i for i, column in enumerate(COLUMNS) if column not in columns]
        scores = held_out(locomo, "original", left, beside)
        cells = (told(recalls(locomo, scores, "original", k) - recalls(locomo, best, "original", k)) for k in (5, 10))
        print(f"| {family} | {' | '.join(cells)} |", flush=True)
    print("\nweights:")
    for column, weight in zip(COLUMNS, weights, strict=True):
        print(f"  {column}: {weight:.4g}")


if __name__ == "__main__":
    main()
