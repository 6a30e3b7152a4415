"""How often `lcm regress` flags planted changes: harmless ones, costly ones, and what lies between.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/regress_power.py [FOLDER]

The baseline is a real run, system=neighbours on LoCoMo, kept in FOLDER (runs/regress_power). A planted change is either
another configuration of that system, run for real, or another order of the baseline's 60 documents a query; each is
measured on all queries, and taken only if it is what it is meant to be:

- harmless: at least 10 % of the top-10 lists differ, and recall@10 moves by at most 0.2 points;
- costly: recall@10 falls by at least 5 points.

The true loss of a change is what it loses over all queries of the dataset. Each is then judged by `lcm regress` itself
on all queries, and on random halves of them. The power curve takes changes between: for a true loss of L points a
random part of the queries, just large enough for L, gets the ranking of the words alone, and all others that of a
harmless change; then queries are drawn with replacement, as if they were new ones, and judged. Prints tables in
Markdown.
"""

import contextlib
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from eval.comparison.pairing import comparable
from eval.dataset.dataset import Dataset
from eval.measures.measure import RunReading
from eval.measures.names import SYSTEM_ARM
from eval.measures.retrieval import Retrieval
from eval.regression.regression import Regression
from eval.run import SUMMARY, Run
from pipelines import regress
from pipelines.config import building, composition
from pipelines.steps.point import evaluated

COMMON = (
    "dataset=locomo", "system=neighbours", "arms=none", "measures.latency.queries=0", "measures.retention.budgets=[]",
    "ranking.stages.limit.n=60",
)  # fmt: skip
WANTED = 50
MOST = 18  # of one mechanism
HALVES = 1  # random halves of the queries that each change is judged on
LOSSES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)  # points of recall@10
DRAWS = 100  # of queries, a loss and number of queries: seeds 0 to 99
RESAMPLES = 2000  # of the power curve; `lcm regress` takes 10,000
RETRIEVAL = Retrieval(names=("recall@5", "recall@10", "nDCG@10", "tokens@10"))

HARMLESS = [
    *(f"fusion.lexical_weight={weight}" for weight in (0.94, 0.96, 0.97, 0.98, 1.02, 1.03, 1.04, 1.06)),
    *(f"ranking.stages.neighbours.dense_weight={weight}" for weight in (0.27, 0.28, 0.29, 0.31, 0.32, 0.33)),
    *(f"ranking.stages.neighbours.lexical_weight={weight}" for weight in (0.27, 0.28, 0.29, 0.31, 0.32, 0.33)),
]
COSTLY = [
    "source=dense",
    "source=lexical",
    "fusion.lexical_weight=0.1",
    "fusion.lexical_weight=0.25",
    "fusion.dense_weight=0.1",
    "fusion.dense_weight=0.25",
    "fusion.dense_weight=0.4",
    "ranking.stages.neighbours.lexical_weight=1.0",
    "ranking.stages.neighbours.dense_weight=1.2",
    "ranking.stages.limit.n=4",
    "ranking.stages.limit.n=5",
    "ranking.stages.limit.n=6",
    "embedder=hashing",
    "source.dense_pool_size=10",
    "source.lexical_pool_size=5",
]


@dataclass(frozen=True, slots=True)
class Change:
    """What a mechanism made, be it what was wanted or not."""

    mechanism: str
    name: str
    run: pl.DataFrame
    documents: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Planted:
    """A change, and what it does over all queries."""

    mechanism: str
    name: str
    folder: Path
    loss: float
    """Points of recall@10."""
    reordered: float
    """The share of the top-10 lists that differ."""


def main(arguments: Sequence[str]) -> None:
    folder = Path(arguments[0]) if arguments else Path("runs/regress_power")
    base = ran(folder / "base", ())
    dataset: Dataset = building.build(composition.composed(COMMON), "dataset").load()
    harmless = list(taken(harmless_changes(folder, base), base, dataset, folder / "harmless", is_harmless))
    costly = list(taken(costly_changes(folder, base), base, dataset, folder / "costly", is_costly))
    print("| planted | changes | mechanisms | loss of recall@10, points | top-10 lists that differ | flagged | "
          "not told | flagged on halves | not told on halves |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for name, changes in (("harmless", harmless), ("costly", costly)):
        print(_row(name, changes, base), flush=True)
    for change in (*harmless, *costly):
        print(f"  {change.mechanism}: {change.name}: {change.loss:.2f} points, {change.reordered:.0%}", file=sys.stderr)
    power(base, folder / "harmless" / "00", ran(folder / "words", ("source=lexical",)))


def is_harmless(change: Planted) -> bool:
    return change.reordered >= 0.10 and abs(change.loss) <= 0.2


def is_costly(change: Planted) -> bool:
    return change.loss >= 5


def ran(folder: Path, overrides: Sequence[str]) -> Path:
    """A real run; one that is there is not run again."""
    if not (folder / SUMMARY).exists():
        evaluated(composition.composed([*COMMON, *overrides]), folder, lambda *_: None)
    return folder


def harmless_changes(folder: Path, base: Path) -> Iterator[Change]:
    """Other weights, then noise and swaps of near ties by turns."""
    run, documents = found_by(base)
    for override in HARMLESS:
        yield Change("another weight", override, *found_by(configured(folder, override)))
    for seed in range(200):
        sigma = (0.01, 0.02, 0.03, 0.04)[seed % 4]
        yield Change("noise on scores", f"sigma={sigma} seed={seed}", noisy(run, sigma, seed), documents)
        gap = (0.02, 0.05, 0.08)[seed % 3]
        yield Change("near ties swapped", f"gap={gap} seed={seed}", swapped(run, gap, seed), documents)


def costly_changes(folder: Path, base: Path) -> Iterator[Change]:
    """Other configurations, then what is done to the baseline's lists."""
    run, documents = found_by(base)
    for override in COSTLY:
        yield Change("another configuration", override, *found_by(configured(folder, override)))
    queries = pl.read_parquet(base / "queries.parquet")
    for category in queries["category"].unique(maintain_order=True):
        of = queries.filter(category=category)["query_id"]
        yield Change(
            "a category shuffled", category, noisy(run, 100.0, 0, pl.col("query_id").is_in(of.implode())), documents
        )
    for workspace in queries["workspace_id"].unique(maintain_order=True):
        yield Change("a conversation lost", workspace, run.filter(pl.col("workspace_id") != workspace), documents)
    for seed in range(40):
        sigma = 0.8 + 0.1 * (seed % 5)
        yield Change("noise on scores", f"sigma={sigma:.1f} seed={seed}", noisy(run, sigma, seed), documents)
        share = 0.06 + 0.01 * (seed % 5)
        yield Change("documents lost", f"share={share:.2f} seed={seed}", without_documents(run, share, seed), documents)
        share = 0.08 + 0.02 * (seed % 4)
        yield Change(
            "queries unanswered", f"share={share:.2f} seed={seed}", without_queries(run, share, seed), documents
        )


def configured(folder: Path, override: str) -> Path:
    return ran(folder / "configured" / override.replace("=", "_"), (override,))


def found_by(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    return pl.read_parquet(folder / "run.parquet"), pl.read_parquet(folder / "documents.parquet")


def noisy(run: pl.DataFrame, sigma: float, seed: int, where: pl.Expr | None = None) -> pl.DataFrame:
    """Normal noise on the scores."""
    noise = pl.Series(np.random.default_rng(seed).normal(0, sigma, len(run)))
    return _ranked(run.with_columns(score=pl.col("score") + (noise if where is None else pl.when(where).then(noise).otherwise(0))))  # fmt: skip


def swapped(run: pl.DataFrame, gap: float, seed: int) -> pl.DataFrame:
    """Every other pair of neighbours in a list whose scores differ by less than `gap` changes places, or not."""
    drawn = pl.Series(np.random.default_rng(seed).random(len(run)) < 0.5)
    first = (pl.col("rank") % 2 == 1).alias("first")
    close = (pl.col("score") - pl.col("score").shift(-1).over("query_id")) < gap
    does = (first & close & drawn).fill_null(value=False)
    return _ranked(
        run.with_columns(does=does)
        .with_columns(was=pl.col("does").shift(1, fill_value=False).over("query_id"))
        .with_columns(
            score=-(pl.col("rank") + pl.col("does").cast(pl.Int64) - pl.col("was").cast(pl.Int64)).cast(float)
        )
        .drop("does", "was")
    )


def without_documents(run: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """A part of all documents is not found any more."""
    documents = run["document_id"].unique().sort()
    lost = documents.sample(fraction=share, seed=seed)
    return _ranked(run.filter(~pl.col("document_id").is_in(lost.implode())))


def without_queries(run: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """A part of the queries finds nothing."""
    asked = run["query_id"].unique(maintain_order=True)
    return run.filter(~pl.col("query_id").is_in(asked.sample(fraction=share, seed=seed).implode()))


def taken(
    changes: Iterator[Change], base: Path, dataset: Dataset, into: Path, is_meant: Callable[[Planted], bool]
) -> Iterator[Planted]:
    """The first that are what they are meant to be, at most MOST of a mechanism, each as a run folder."""
    run, documents = found_by(base)
    before, lists = measured(run, documents, dataset), top_lists(run)
    found: Counter[str] = Counter()
    for change in changes:
        if found.total() == WANTED:
            return
        if found[change.mechanism] == MOST:
            continue
        values = measured(change.run, change.documents, dataset)
        both = lists.join(top_lists(change.run), on="query_id", how="full", coalesce=True, suffix="_after")
        planted = Planted(
            change.mechanism,
            change.name,
            into / f"{found.total():02d}",
            100 * (mean(before) - mean(values)),
            float(both.select(pl.col("document_id").ne_missing(pl.col("document_id_after")).mean()).item()),
        )
        if is_meant(planted):
            found[change.mechanism] += 1
            write(planted.folder, base, change, values)
            yield planted


def measured(run: pl.DataFrame, documents: pl.DataFrame, dataset: Dataset) -> pl.DataFrame:
    """At the whole depth of the run: the fifth session may stand below the tenth document."""
    rows = RETRIEVAL.rows(RunReading(SYSTEM_ARM, run, documents, dataset))
    return rows.select(pl.lit(SYSTEM_ARM).alias("arm"), pl.all())


def mean(values: pl.DataFrame) -> float:
    return float(values.filter(measure="recall@10")["value"].mean())  # type: ignore[arg-type]


def top_lists(run: pl.DataFrame) -> pl.DataFrame:
    return run.filter(pl.col("rank") <= 10).sort("query_id", "rank").group_by("query_id").agg("document_id")


def write(folder: Path, base: Path, change: Change, values: pl.DataFrame) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    change.run.write_parquet(folder / "run.parquet")
    change.documents.write_parquet(folder / "documents.parquet")
    values.write_parquet(folder / "per_query.parquet")
    (folder / "queries.parquet").write_bytes((base / "queries.parquet").read_bytes())
    (folder / SUMMARY).write_text((base / SUMMARY).read_text())


def _row(name: str, changes: Sequence[Planted], base: Path) -> str:
    whole, halves = Counter[str](), Counter[str]()
    for change in changes:
        whole[judged(base, change.folder)] += 1
        sides = comparable(base, "base"), comparable(change.folder, change.name)
        for seed in range(HALVES):
            asked = sides[0].queries.sample(fraction=0.5, seed=seed)
            halves[Regression().compare(*(restricted(side, asked) for side in sides)).gate] += 1
    losses, lists = [change.loss for change in changes], [change.reordered for change in changes]
    kinds = ", ".join(f"{kind} {n}" for kind, n in Counter(change.mechanism for change in changes).items())
    cells = (
        name, len(changes), kinds, f"{min(losses):.2f} to {max(losses):.2f}", f"{min(lists):.0%} to {max(lists):.0%}",
        whole["regressed"], whole["cannot tell"],
        f"{halves['regressed']} of {halves.total()}", f"{halves['cannot tell']} of {halves.total()}",
    )  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def judged(base: Path, candidate: Path) -> str:
    """The verdict of the command itself."""
    into = candidate / "against_base"
    if not (into / SUMMARY).exists():
        with contextlib.redirect_stdout(io.StringIO()):
            regress.main([str(base), str(candidate), f"into={into}", "tracking=none", "report=false"])
    return str(json.loads((into / "report.json").read_text())["gate"])


def restricted(side: Run, asked: pl.DataFrame) -> Run:
    return replace(
        side,
        queries=side.queries.join(asked, on="query_id", how="semi", maintain_order="left"),
        values=side.values.join(asked, on="query_id", how="semi", maintain_order="left"),
    )


def power(base: Path, harmless: Path, costly: Path) -> None:
    """The table of losses between, by the number of queries."""
    sides = {name: comparable(path, name) for name, path in (("base", base), ("noise", harmless), ("words", costly))}
    measures = list(Regression().measures)
    queries = sides["base"].queries.join(sides["base"].values, on="query_id", how="semi", maintain_order="left")
    tables = {
        name: queries.select("query_id").join(
            side.values.filter(pl.col("measure").is_in(measures)).pivot("measure", index="query_id", values="value"),
            on="query_id", how="left", maintain_order="left",
        )
        for name, side in sides.items()
    }  # fmt: skip
    recall = {name: table["recall@10"].to_numpy() for name, table in tables.items()}
    judge = Regression(resamples=RESAMPLES, changed_queries=0)
    n = len(queries)
    print(
        f"\n| true loss, points | {n:,} queries: flagged | not told | fine | "
        f"{n // 2} queries: flagged | not told | fine |"
    )
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for loss in LOSSES:
        cells = []
        for size in (n, n // 2):
            verdicts: Counter[str] = Counter()
            for seed in range(DRAWS):
                rng = np.random.default_rng(seed)
                gets_words = mixed(recall, loss / 100, rng)
                table = pl.concat([tables["words"].filter(gets_words), tables["noise"].filter(~gets_words)])
                after = queries.select("query_id").join(table, on="query_id", how="left", maintain_order="left")
                drawn = rng.integers(0, n, size)
                pair = (drawn_side(sides["base"], queries, table, drawn) for table in (tables["base"], after))
                verdicts[judge.compare(*pair).gate] += 1
            cells += [f"{verdicts[v] / DRAWS:.1%}" for v in ("regressed", "cannot tell", "fine")]
        print(f"| {loss:g} | {' | '.join(cells)} |", flush=True)


def mixed(recall: dict[str, np.ndarray], loss: float, rng: np.random.Generator) -> np.ndarray:
    """Which queries get the costly ranking, so that the mean loss over all is the wanted one, to half a query."""
    harmless, costly = (np.nan_to_num(recall["base"] - recall[name]) for name in ("noise", "words"))
    order = rng.permutation(len(harmless))
    judged = np.isfinite(recall["base"]).sum()
    totals = (harmless.sum() + np.concatenate([[0], np.cumsum((costly - harmless)[order])])) / judged
    last = int(np.argmin(np.abs(totals - loss))) if loss else 0
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[:last]] = True
    return chosen


def drawn_side(side: Run, queries: pl.DataFrame, table: pl.DataFrame, drawn: np.ndarray) -> Run:
    """A side of the queries that were drawn, each under an id of its own."""
    ids = [f"{i}" for i in range(len(drawn))]
    wide = table[drawn].with_columns(query_id=pl.Series(ids))
    values = wide.unpivot(index="query_id", variable_name="measure", value_name="value").drop_nulls()
    return replace(side, queries=queries[drawn].with_columns(query_id=pl.Series(ids)), values=values)


def _ranked(run: pl.DataFrame) -> pl.DataFrame:
    """Ranks by score, ties as they stood."""
    return run.sort("query_id", "score", descending=[False, True], maintain_order=True).with_columns(
        rank=pl.int_range(1, pl.len() + 1).over("query_id")
    )


if __name__ == "__main__":
    main(sys.argv[1:])
