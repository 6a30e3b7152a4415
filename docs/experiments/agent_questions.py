"""What systems find in the talk of agents, by document and by token: tables over `agent_questions`, in Markdown.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python docs/experiments/agent_questions.py \
        --system "neighbours: system=neighbours" --system "unified, steps: system=unified extraction=steps"

Each kind of talk is a dataset of its own (`talk_kinds.py`). A row is a kind and a system, which is a name and the
overrides that make it, or a control arm over the first system's memory (`--arm bm25`): means over the judged questions
with 95 % percentile bootstrap intervals. Below, each against the first, or the one that `--baseline` names: the mean
difference, paired by question. The last rows of both are the questions of all kinds together. `--kind` chooses kinds,
`--measure` the columns; what was worked out before comes from the cache.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from system_parts import shown
from talk_kinds import AGENT_QUESTIONS, overrides

from eval.measures.names import SYSTEM_ARM
from lcm.errors import LcmError
from pipelines.config import composition
from pipelines.steps.point import experiment_of

MEASURES = (
    *("recall@5", "recall@10", "MRR", "nDCG@10"),
    *("recall@1000t", "recall@2000t", "recall@4000t", "tokens@10"),
)
ALL = "all"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--system", action="append", required=True, metavar="'NAME: OVERRIDES'", type=_system)
    parser.add_argument("--arm", action="append", default=[], help="bm25, dense, oracle, ...")
    parser.add_argument("--kind", action="append", choices=AGENT_QUESTIONS)
    parser.add_argument("--measure", action="append")
    parser.add_argument("--baseline", help="a system's name; the first where none is named")
    given = parser.parse_args()
    names, measures = [name for name, _ in given.system], given.measure or MEASURES
    baseline = given.baseline or names[0]
    if baseline not in (*names, *given.arm):
        parser.error(f"--baseline {baseline} is none of {', '.join((*names, *given.arm))}")
    kinds = given.kind or AGENT_QUESTIONS
    try:
        found = pl.concat(measured(kind, given.system, given.arm) for kind in kinds)
    except LcmError as error:
        parser.error(str(error))
    found = pl.concat([found, found.with_columns(kind=pl.lit(ALL))] if len(kinds) > 1 else [found])
    for line in (*means(found, measures), "", *differences(found, measures, baseline)):
        print(line)


def measured(kind: str, systems: Sequence[tuple[str, Sequence[str]]], arms: Sequence[str]) -> pl.DataFrame:
    """Rows kind, system, query_id and a column for each measure, of every judged question of a kind."""
    of_systems, of_arms = [], []
    for number, (name, made_by) in enumerate(systems):
        with TemporaryDirectory() as folder:
            with_arms = "arms=controls" if arms and not number else "arms=none"
            asked = (*overrides(kind, Path(folder)), "measures=retrieval", "tracking=none", with_arms, *made_by)
            values = experiment_of(composition.composed(asked)).run(lambda *_: None).values
        if not number and (unknown := sorted(set(arms) - set(values["arm"]))):
            raise SystemExit(f"there is no control arm {unknown[0]!r}; these are: {', '.join(values['arm'].unique())}")
        named = values.with_columns(system=pl.col("arm").replace({SYSTEM_ARM: name}), kind=pl.lit(kind))
        of_systems.append(named.filter(arm=SYSTEM_ARM))
        of_arms.append(named.filter(pl.col("arm").is_in(arms)))
    rows = pl.concat([*of_systems, *of_arms])
    return rows.pivot("measure", index=["kind", "system", "query_id"], values="value", maintain_order=True)


def means(found: pl.DataFrame, measures: Sequence[str]) -> Iterator[str]:
    yield from _heading(("kind", "system", "n", *measures))
    for (kind, system), rows in found.group_by("kind", "system", maintain_order=True):
        judged = rows.drop_nulls(measures)
        yield _row(kind, system, len(judged), *(_cell(judged[measure], measure) for measure in measures))


def differences(found: pl.DataFrame, measures: Sequence[str], baseline: str) -> Iterator[str]:
    yield from _heading(("kind", f"against {baseline}", "n", *measures))
    base = found.filter(system=baseline).drop("system")
    for (kind, system), rows in found.filter(pl.col("system") != baseline).group_by(
        "kind", "system", maintain_order=True
    ):
        both = rows.join(base, on=["kind", "query_id"], suffix="_base", maintain_order="left").drop_nulls(measures)
        gains = ((both[measure] - both[f"{measure}_base"], measure) for measure in measures)
        yield _row(kind, system, len(both), *(_cell(gain, measure, "+") for gain, measure in gains))


def _system(text: str) -> tuple[str, Sequence[str]]:
    name, colon, made_by = text.partition(":")
    if not name.strip() or not colon:
        raise argparse.ArgumentTypeError(f"must be NAME: OVERRIDES, got {text!r}")
    return name.strip(), made_by.split()


def _cell(values: pl.Series, measure: str, sign: str = "") -> str:
    if measure.startswith("tokens"):
        return f"{values.mean():{sign},.0f}"
    return shown(values.to_numpy(), sign)


def _heading(cells: Sequence[str]) -> Iterator[str]:
    yield _row(*cells)
    yield f"|---|---|{'--:|' * (len(cells) - 2)}"


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
