"""What systems find in every kind of talk, by document and by token: tables in Markdown.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/ranking_tables.py \
        --system "neighbours: system=neighbours" --system "unified, kind left out: system=unified @left_out.json" \
        --system "unified: system=unified" --runs "unified of before: runs/before" \
        --arm bm25 --arm dense --arm oracle --best "plain arm: bm25, dense"

Each kind of talk is a dataset of its own (`talk_kinds.py`). A row is a kind and

- a system: a name and the overrides that make it; `@FILE` adds those that a JSON file has for the kind, as
  `learn_fusion.py weights --left-out FILE` writes them;
- runs that were made elsewhere, those of a kind in `FOLDER/KIND`, as far as there are any;
- a control arm over the memory of the first row, which has runs of every kind.

Means over the judged questions with 95 % percentile bootstrap intervals; n counts the questions that have all
measures of the row. `--best` leaves of several rows the one with the highest recall@10 of its kind. Below, each
against the first row, or the one that `--baseline` names: the mean difference, paired by question. `--kind` chooses
kinds, `--measure` the columns. Runs are kept below `--folder`; what the same components have found in the same dataset
is not looked for again.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from system_parts import key_of, shown
from talk_kinds import EVERY_KIND, GROUPS, overrides

from eval.experiment.experiment import Experiment
from eval.measures.names import SYSTEM_ARM
from eval.run import SUMMARY, Run, read_summary
from lcm.errors import LcmError
from pipelines.config import composition
from pipelines.steps.point import experiment_of, measured

MEASURES = (
    *("recall@5", "recall@10", "MRR", "nDCG@10"),
    *("recall@1000t", "recall@2000t", "recall@4000t", "tokens@10"),
)
DECIDES = "recall@10"
"""Which of several is the best."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A system, and what makes it."""

    name: str
    words: Sequence[str]
    """Overrides, and `@FILE` for those that a file has for a kind."""

    def made_by(self, kind: str) -> list[str]:
        """The overrides that make it for a kind.

        Raises:
            LcmError: if a file has none for it.
        """
        found: list[str] = []
        for word in self.words:
            if not word.startswith("@"):
                found.append(word)
                continue
            of_kinds = json.loads(Path(word[1:]).read_text(encoding="utf-8"))
            if kind not in of_kinds:
                raise LcmError(f"{word[1:]} has no overrides for {kind!r}, only for: {', '.join(sorted(of_kinds))}")
            found += of_kinds[kind]
        return found

    def run(self, kind: str, folder: Path, arms: str) -> Path:
        """The folder of its run over a kind."""
        asked = (*overrides(kind, folder), "measures=retrieval", "tracking=none", f"arms={arms}", *self.made_by(kind))
        config = composition.composed(asked)
        experiment = experiment_of(config)
        parts = experiment.evaluator
        components = [parts.system, parts.replay, parts.measures, parts.arms]
        found = folder / kind / key_of(components, [parts.dataset.digest], Experiment)
        if not (found / SUMMARY).is_file():
            Run.begin(found)
            measured(config, experiment, found, lambda *_: None, asked)
        return found


@dataclass(frozen=True, slots=True)
class Recorded:
    """Runs that were made elsewhere."""

    name: str
    folder: Path

    def run(self, kind: str, folder: Path, arms: str) -> Path | None:
        """The folder of the run over a kind; None = there is none."""
        found = self.folder / kind
        return found if (found / SUMMARY).is_file() else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    told = {"action": "append", "dest": "systems", "default": []}
    parser.add_argument("--system", metavar="'NAME: OVERRIDES'", type=_system, **told)
    parser.add_argument("--runs", metavar="'NAME: FOLDER'", type=_recorded, **told)
    parser.add_argument("--arm", action="append", default=[], help="bm25, dense, oracle, ...")
    parser.add_argument("--best", action="append", default=[], metavar="'NAME: ROW, ROW'", type=named)
    parser.add_argument("--kind", action="append", choices=EVERY_KIND)
    parser.add_argument("--measure", action="append")
    parser.add_argument("--baseline", help="a row's name; the first where none is named")
    parser.add_argument("--folder", default="runs/ranking_tables", type=Path, help="where runs are kept")
    given = parser.parse_args()
    if not given.systems:
        parser.error("name what is to be compared: --system 'NAME: OVERRIDES', or --runs 'NAME: FOLDER'")
    rows = [*(one.name for one in given.systems), *given.arm]
    measures, baseline = given.measure or MEASURES, given.baseline or rows[0]
    best = {name: [one.strip() for one in text.split(",")] for name, text in given.best}
    if unknown := [name for name in (baseline, *(one for ones in best.values() for one in ones)) if name not in rows]:
        parser.error(f"there is no row {unknown[0]!r}; these are: {', '.join(rows)}")
    folder = given.folder.resolve()
    try:
        found = pl.concat(
            [values_of(kind, given.systems, given.arm, folder) for kind in given.kind or EVERY_KIND], how="diagonal"
        )
    except LcmError as error:
        parser.error(str(error))
    found = with_groups(found).with_columns(pl.lit(None).alias(one) for one in measures if one not in found.columns)
    for line in (*means(with_best(found, best), measures), "", *differences(found, measures, baseline)):
        print(line)


def values_of(kind: str, systems: Sequence[Tried | Recorded], arms: Sequence[str], folder: Path) -> pl.DataFrame:
    """Rows kind, system, query_id and a column for each measure, of every judged question of a kind."""
    of_systems, of_arms = [], []
    for number, one in enumerate(systems):
        run = one.run(kind, folder, "controls" if arms and not number else "none")
        if run is None:
            print(f"{kind}, {one.name}: no run", file=sys.stderr)
            continue
        print(f"{kind}, {one.name}: {run} of {read_summary(run)['commit'][:7]}", file=sys.stderr, flush=True)
        values = Run(run).per_query
        if not number and (unknown := sorted(set(arms) - set(values["arm"]))):
            raise LcmError(f"there is no control arm {unknown[0]!r}; these are: {', '.join(values['arm'].unique())}")
        named = values.with_columns(system=pl.col("arm").replace({SYSTEM_ARM: one.name}), kind=pl.lit(kind))
        of_systems.append(named.filter(arm=SYSTEM_ARM))
        if not number:
            of_arms += [named.filter(arm=arm) for arm in arms]
    rows = pl.concat([*of_systems, *of_arms], how="diagonal")
    return rows.pivot("measure", index=["kind", "system", "query_id"], values="value", maintain_order=True)


def with_groups(found: pl.DataFrame) -> pl.DataFrame:
    """Behind all kinds the groups of which every kind is there, as kinds of their own."""
    together = [
        found.filter(pl.col("kind").is_in(kinds)).with_columns(kind=pl.lit(group))
        for group, kinds in GROUPS.items()
        if set(kinds) <= set(found["kind"])
    ]
    return pl.concat([found, *together])


def with_best(found: pl.DataFrame, best: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """Of the rows that a name stands for the best of each kind, under that name."""
    for name, ones in best.items():
        of_name = pl.col("system").is_in(ones)
        value = found.filter(of_name).group_by("kind", "system", maintain_order=True).agg(pl.col(DECIDES).mean())
        first = value.sort(DECIDES, descending=True, maintain_order=True).unique("kind", keep="first")
        chosen = first.select("kind", "system", label=pl.format(f"{name}: {{}}", "system"))
        found = (
            found.join(chosen, on=["kind", "system"], how="left", maintain_order="left")
            .filter(~of_name | pl.col("label").is_not_null())
            .with_columns(system=pl.coalesce("label", "system"))
            .drop("label")
        )
    return found


def means(found: pl.DataFrame, measures: Sequence[str]) -> Iterator[str]:
    yield from heading(("kind", "system", "n", *measures))
    for (kind,), of_kind in found.group_by("kind", maintain_order=True):
        for (system,), rows in of_kind.group_by("system", maintain_order=True):
            yield row(kind, system, *_cells(rows, measures))


def differences(found: pl.DataFrame, measures: Sequence[str], baseline: str) -> Iterator[str]:
    yield from heading(("kind", f"against {baseline}", "n", *measures))
    base = found.filter(system=baseline).drop("system")
    for (kind, system), rows in found.filter(pl.col("system") != baseline).group_by(
        "kind", "system", maintain_order=True
    ):
        both = rows.join(base, on=["kind", "query_id"], suffix="_base", maintain_order="left")
        gains = both.select(pl.col(measure) - pl.col(f"{measure}_base") for measure in measures)
        yield row(kind, system, *_cells(gains, measures, "+"))


def _system(text: str) -> Tried:
    name, words = named(text)
    return Tried(name, words.split())


def _recorded(text: str) -> Recorded:
    name, folder = named(text)
    return Recorded(name, Path(folder).expanduser())


def named(text: str) -> tuple[str, str]:
    """A name, and what stands behind the colon."""
    name, colon, rest = (part.strip() for part in text.partition(":"))
    if not name or not colon:
        raise argparse.ArgumentTypeError(f"must be NAME: and what it stands for, got {text!r}")
    return name, rest


def _cells(rows: pl.DataFrame, measures: Sequence[str], sign: str = "") -> list[str]:
    """How many questions have all the measures that any question has, and of those each measure."""
    known = [measure for measure in measures if rows[measure].count()]
    judged = rows.drop_nulls(known)
    return [str(len(judged)), *(_cell(judged[one], one, sign) if one in known else "–" for one in measures)]


def _cell(values: pl.Series, measure: str, sign: str) -> str:
    if measure.startswith("tokens"):
        return f"{values.mean():{sign},.0f}"
    return re.sub(r"\b0\.", ".", shown(values.to_numpy(), sign)).replace(",", "")


def heading(cells: Sequence[str], names: int = 2) -> Iterator[str]:
    """Of a table whose first columns are names, and whose others are numbers."""
    yield row(*cells)
    yield f"|{'---|' * names}{'--:|' * (len(cells) - names)}"


def row(*cells: object) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
