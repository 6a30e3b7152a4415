"""lcm compare BASELINE OTHER ... [by=MEASURE] [measures=A,B] [with='KEY=VALUE ...'] [into=FOLDER] [--json]

Which system is better than the baseline, by what, and what does it cost? The sides are compared over the questions that
all of them were asked, query by query: of each measure better, worse or cannot tell, with paired intervals and a
permutation test that is corrected over the whole table (Holm); best first. docs/compare.md tells more.

The first side is the baseline. Each is one of:
  a folder that `lcm evaluate` wrote, one point of a sweep among them
  the folder of a sweep: all its points, and what they were held against before them
  an MLflow run id, or a registered alias such as champion, NAME@champion (tracking.uri=...; name=NAME, unified)
  a preset that `lcm export` wrote, a folder or a YAML file
  a system by its name (unified), the word default, or settings: system=libravdb, fusion=reciprocal_rank,
  fusion.dense_weight=0.3,0.5 (a side each), 'fusion=reciprocal_rank fusion.k=30' (one side)

What is no run yet is evaluated now, and found again by the next comparison. dataset= and all that decides how is
measured (judgements, replay, measures, means) is for all of them, else as the first run among the sides has it;
with='embedder=hashing' are settings for all that is evaluated.

  by=MEASURE        what sides are sorted by; else the first that is no cost, recall@10 mostly
  measures=A,B      what is compared; else recall@10, nDCG@10, recall@2000t, tokens@10 and what contexts retain
  cluster=workspace all queries of a workspace are drawn and change sides together
  into=FOLDER       takes report.html, compare.md, compare.png, compare.json and compare.parquet; else below runs/
  report=false      write no page
  --json            compare.json on standard output, and nothing else there

Logged to MLflow as tracking says (tracking=none: it is not)."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval.comparison.comparison import Comparison, compared
from eval.comparison.report import MARKDOWN, explained, headline, incidents, table, write_comparison
from eval.tracking.tracking import Tracking
from lcm.errors import LcmError
from pipelines.config import building, command_line, composition
from pipelines.config.arguments import told_apart
from pipelines.config.overrides import group_of
from pipelines.steps.reporting import reported
from pipelines.steps.sides import NAME, SHARED, SidesAsked, all_sides
from pipelines.views.output import output
from pipelines.views.progress import progress
from pipelines.views.terminal import kept, log_and_report, say, show, tell_json

_MOST_SIDES = 12
_OWN = ("by", "measures", "with", "into", "name", "cluster", "report")
_OF_ALL = (*SHARED, "distractors", "means", "arms", "executor", "stages", "cache")


def main(arguments: Sequence[str]) -> int:
    """`lcm compare BASELINE OTHER ... [KEY=VALUE ...]`."""
    if option := next((argument for argument in arguments if argument.startswith("-")), None):
        raise LcmError(f"no such option: {option!r}; `lcm compare --help` tells more")
    told = told_apart(arguments, _OWN)
    if empty := next((key for key, value in told.settings.items() if not value), None):
        raise LcmError(f"{empty}= has no value: write {empty}=VALUE, or leave it out")
    of_tracking = [one for one in told.overrides if group_of(one) == "tracking"]
    of_all = [one for one in told.overrides if group_of(one) in _OF_ALL]
    others = {*told.words, *told.overrides} - {*of_tracking, *of_all}
    sides = tuple(argument for argument in arguments if argument in others)
    if not sides:
        raise LcmError("name the sides: runs, a sweep, MLflow runs, presets, or systems such as default unified")
    drawn: Any = told.choice("cluster", ("none", "workspace"), "none")
    overrides = command_line.command([*of_all, *shlex.split(told.settings.get("with", ""))]).overrides
    now, page = datetime.now(UTC), ""
    tracking: Tracking = building.build(composition.composed(of_tracking), "tracking")
    with command_line.new_folder_of("compare", told.settings.get("into"), now) as into:
        asked = SidesAsked(sides, told.settings.get("name", NAME), tracking.address, overrides, into)
        with tracking.logger() as log:
            with progress() as show:
                found = compared(all_sides(asked, show), told.settings.get("by"), told.names("measures"), drawn)
            record = write_comparison(into, found, now.timestamp())
            if output().is_json:
                tell_json(record)
            else:
                show_comparison(found, into / MARKDOWN)
            if told.flag("report", default=True):
                with progress() as show:
                    page = reported(into, show, asks_memories=True)
            log_and_report(log, into)
        if page:
            say(page)
    return 0


def show_comparison(comparison: Comparison, page: Path) -> None:
    """The fullest table that fits, best first; a line for each side; where the rest is."""
    beside = f"; {comparison.label}" if comparison.label else ""
    told = replace(table(comparison, _MOST_SIDES), caption=f"{comparison.title}{beside}", notes=[explained(comparison)])
    show(told, f"{page} has all")
    if (hidden := len(comparison.standings) - _MOST_SIDES) > 0:
        say(f"{hidden} more sides: {page} has all")
    for line in (*headline(comparison)[:_MOST_SIDES], *incidents(comparison)[:_MOST_SIDES]):
        say(line)
    for note in comparison.notes[:_MOST_SIDES]:
        say(f"note: {note}")
    kept(page)
