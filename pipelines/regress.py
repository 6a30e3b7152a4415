"""lcm regress BASELINE [CANDIDATE] [into=FOLDER] [name=NAME] [GROUP=CHOICE] [KEY=VALUE]

Has the candidate become better or worse than the baseline? Both are compared query by query: a permutation test and a
bootstrap interval for each measure, over all queries, and in each category, corrected for their number (Holm). What is
tolerated stands in conf/regress.yaml: regress.measures.recall@10.tolerance=0.02, and for another measure
regress.measures={MRR:{tolerance:0.01,detectable:0.05}}. Costs, such as tokens@10, are told and fail nothing unless they
are named so. docs/regress.md tells more.

Each side is one of:
  a folder that `lcm evaluate` wrote, or its summary.json beside per_query.parquet and queries.parquet
  an MLflow run id, or a registered alias such as champion, NAME@champion (tracking.uri=...; name=NAME, unified)
  a preset that `lcm export` wrote, a folder or a YAML file: evaluated now, on the other side's dataset
Without a candidate, what the overrides describe is evaluated now, on the baseline's dataset unless they name one:
  lcm regress champion system=neighbours fusion.dense_weight=0.5

into=FOLDER takes report.html, report.md, report.xml (JUnit), report.json and verdict.parquet; logged to MLflow as
tracking says; report=false writes no page.
--cfg job shows every key.
Exit code 0: fine; 1: regressed; 3: inconclusive, too few queries to tell; 2: nothing was compared, as after a typo,
without the baseline or its server, or of sides that cannot be compared."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
from omegaconf import DictConfig, OmegaConf

from eval.configuration import leaves
from eval.dataset.dataset import generated_label
from eval.measures.means import ALL
from eval.regression.regression import GatedComparison, Regression, limits_of, with_words
from eval.regression.report import CORRECTED, MARKDOWN, changes, headline, table, write_regression
from eval.tracking.tracking import Tracking
from lcm.errors import LcmError
from pipelines.config import building, command_line
from pipelines.config.command_line import Command
from pipelines.steps.reporting import dataset_at_hand, reported
from pipelines.steps.sides import NAME, SidesAsked, two_sides
from pipelines.views.progress import progress
from pipelines.views.terminal import brief, kept, log_and_report, say, show, show_config

_TEXT = 60  # letters of a query
_OURS = ("baseline", "candidate", "into", "name")
_LIMIT = re.compile(r"regress\.measures\.(.+)\.(tolerance|detectable)")


def main(arguments: Sequence[str]) -> int:
    """`lcm regress BASELINE [CANDIDATE] [KEY=VALUE ...]`."""
    if not any(arguments):  # as in a script whose variable is not set: a gate must not pass then
        raise LcmError("lcm regress needs a baseline: a run folder, the id of an MLflow run, or NAME@ALIAS")
    command = command_line.read([_readable(one) for one in arguments], "regress", _OURS)
    if command.look is not None:
        return show_config(command)
    ours, config = _sides(command), command.config
    if "baseline" not in ours:
        raise LcmError("name a baseline: a run folder, an MLflow run id, an alias such as champion, or a preset")
    regression = _regression(config)
    tracking: Tracking = building.build(config, "tracking")
    now, page, dataset = datetime.now(UTC), "", None
    sides = tuple(ours[side] for side in ("baseline", "candidate") if side in ours)
    with command_line.new_folder_of("regress", ours.get("into"), now) as into:
        asked = SidesAsked(sides, ours.get("name", NAME), tracking.address, command.overrides, into)
        with tracking.logger() as log:
            with progress() as show:
                comparison = regression.compare(*two_sides(asked, show))
            if comparison.shows_rankings:
                dataset, missing = dataset_at_hand(comparison.baseline)
                comparison = with_words(comparison, dataset) if dataset else comparison.noting(missing)
            judging = building.resolved_text(building.resolved(_judging(config)))
            write_regression(into, comparison, _flat(config), judging, now)
            show_regression(comparison, into / MARKDOWN)
            if config.report:
                with progress() as show:
                    page = reported(into, show, dataset, asks_memories=True)
            log_and_report(log, into)
        if page:
            say(page)
    return comparison.exit_code


def _regression(config: DictConfig) -> Regression:
    """How it is judged.

    Limits are looked at one by one: of what does not fit its type, configuration shows the whole map of them.
    """
    measures = building.resolved(_judging(config))["regress"]["measures"]
    for measure, settings in measures.items() if isinstance(measures, dict) else ():
        try:
            if settings is not None:
                limits_of(str(measure), settings)
        except ValueError as error:
            raise LcmError(f"regress.{error}") from None
    regression: Regression = building.build(config, "regress")
    return regression


def _sides(command: Command) -> dict[str, str]:
    """The command's own settings, the sides among them whether they are named by keys or not."""
    ours = dict(command.own)
    if empty := next((key for key, value in ours.items() if not value), None):
        raise LcmError(f"{empty}= has no value: write {empty}=VALUE, or leave it out")
    for word in command.words:
        free = [side for side in ("baseline", "candidate") if side not in ours]
        if not free:
            raise LcmError(f"{word}: two sides are named already, {ours['baseline']} and {ours['candidate']}")
        ours[free[0]] = word
    return ours


def _readable(override: str) -> str:
    """An override as Hydra takes it, which reads `@` in a key as something else and refuses a measure that is new."""
    if "=" not in override or Path(override).exists():
        return override
    key, _, value = override.lstrip("+").partition("=")
    if key.startswith("hydra.run."):
        raise LcmError(f"{override}: write into=FOLDER")
    if (found := _LIMIT.fullmatch(key)) is None:
        measure, _, name = key.removeprefix("regress.").removeprefix("measures.").rpartition(".")
        if near := difflib.get_close_matches(name, ("tolerance", "detectable"), n=1, cutoff=0.7):
            raise LcmError(
                f"{key}: no such key; did you mean regress.measures.{measure or 'recall@10'}.{near[0]}={value}?"
            )
    else:
        return f"+regress.measures={{{found[1]}:{{{found[2]}:{value}}}}}"
    return f"+{key}={value}" if key == "regress.measures" else override


def _judging(config: DictConfig) -> DictConfig:
    """The part of the configuration that a comparison depends on, beside its sides."""
    return OmegaConf.masked_copy(config, "regress")


def _flat(config: DictConfig) -> dict[str, Any]:
    """The settings by which it is judged, without measures that have no limits."""
    settings = leaves(building.resolved(_judging(config))["regress"])
    left_out = ("_target_", *(f"measures.{name}" for name in config.regress.measures), "measures")
    return {key: value for key, value in settings if key not in left_out}


def show_regression(comparison: GatedComparison, report: Path) -> None:
    """The rows over all queries, those of categories that moved or regressed, the queries that changed most, and what
    the gate says."""
    rows = comparison.rows
    is_shown = (pl.col("group") == ALL) | pl.col("verdict").is_in(["better", "worse"])
    found = table([*rows.filter(is_shown).iter_rows(named=True)], comparison.confidence)
    named = [(measure if group == ALL else f"{measure}, {group}", *others) for group, measure, *others in found.rows]
    label = generated_label(comparison.baseline.summary["dataset"])
    paired = f"paired by query; {label}" if label else "paired by query"
    told = replace(
        found,
        columns=found.columns[1:],
        rows=named,
        caption=f"{comparison.candidate.name} against {comparison.baseline.name}, {paired}",
        notes=[f"an interval is of its row alone; {CORRECTED}"],
    )
    show(told, f"{report} has all")
    hidden = rows.filter(~is_shown & pl.col("gate").is_not_null())
    if not hidden.is_empty():
        untold = (hidden["gate"] == "cannot tell").sum()
        say(f"{len(hidden)} rows of categories got neither better nor worse; of {untold} the gate cannot tell")
    if comparison.left_out:
        say(f"not measured in either: {', '.join(comparison.left_out)}")
    for word, queries in (("better", comparison.better), ("worse", comparison.worse)):
        for query in queries:
            text = brief(" ".join(query.text.split()), _TEXT)
            say(f"{word}: {query.query_id} {text!r}: {changes(query, comparison.costs)}")
    for note in (*comparison.notes, *comparison.baseline.summary.get("notes", ())):
        say(f"note: {note}")
    say(headline(comparison))
    kept(report, ", with the rankings of both sides")
