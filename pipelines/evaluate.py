"""lcm evaluate [PATH ... QUESTIONS] [GROUP=CHOICE ...] [KEY=VALUE ...] [-m]

Evaluate a memory system over recorded transcripts: retrieval measures with intervals beside control arms,
logged to MLflow, kept in runs/DATE/TIME, or in what hydra.run.dir=FOLDER names, with a page that shows it.

  lcm evaluate                                  the default system on the bundled sample
  lcm evaluate dataset=locomo fusion=reciprocal_rank
  lcm evaluate system=hybrid fusion.dense_weight=0.5 measures.latency.queries=0
  lcm evaluate ~/sessions questions.jsonl       your own sessions and questions: dataset=own
  lcm evaluate -m text_index=fts5,bm25s         a sweep: every combination, resumable
  lcm evaluate -m for=lancedb_pro@1.1.0-beta.11 decay=weibull,none
                                                a sweep that says first which swept keys a plugin's version can take
  report=false                                  write no page
  --cfg job                                     show the composed configuration; --resolve: with references worked out
  --explain                                     show which part reads which key, and which keys nothing reads
  --config-dir FOLDER                           look for choices in this folder too
  --debug                                       show the traceback of an error

Groups and their choices (GROUP=CHOICE):
$GROUPS"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from eval.comparison.comparison import against_controls
from eval.experiment.outcome import ALIGNED
from eval.measures.measure import directions_of
from eval.measures.names import CONTEXT_COSTS, HAS_NO_NUMBER, kind_of
from eval.run import Run
from pipelines.config.building import as_written
from pipelines.config.command_line import Command, claimed
from pipelines.config.contracts import Part, UnreadKey, idle_note, keys_unread, parts_read
from pipelines.steps.point import READ, experiment_of, measured, parts_of
from pipelines.steps.reporting import reported
from pipelines.steps.sweep import sweep
from pipelines.views.output import output
from pipelines.views.progress import progress, working
from pipelines.views.runs import show_run
from pipelines.views.terminal import brief, log_and_report, say, show_table, tell_json

_LONGEST = 60  # letters of a value
UNTOLD = 2
"""The exit code where an external memory has no number, though control arms have theirs: a fault is never success."""


def main(command: Command) -> int:
    """`lcm evaluate [PATH ... QUESTIONS] [GROUP=CHOICE ...] [KEY=VALUE ...] [-m]`."""
    if command.is_multirun:
        return sweep(command)
    if command.is_explained:
        return explain(command.config)
    parts = parts_of(command.config, command.overrides)
    with claimed(command) as folder:
        summary = evaluate(command, parts, folder.absolute())
    told = [name for name in summary["measures"] if kind_of(name) not in (ALIGNED, *CONTEXT_COSTS)]
    return UNTOLD if any(HAS_NO_NUMBER in flag for flag in summary["flags"]) and not told else 0


def explain(config: DictConfig) -> int:
    """Show what reads the keys of a configuration; returns the exit code."""
    plain = as_written(config)
    parts, unread, note = parts_read(plain, READ), keys_unread(plain, READ), idle_note(config)
    if output().is_json:
        tell_json({"parts": list(map(asdict, parts)), "unread": list(map(asdict, unread)), "note": note})
    else:
        show_readers(parts, unread)
        if note:
            say(note)
    return 0


def evaluate(command: Command, parts: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """One run: the story of the whole project. Returns its summary."""
    Run.begin(folder)
    with working("loading the dataset"):
        experiment = experiment_of(command.config, parts=parts)  # a mistake in it stops before anything is logged
    with parts["tracking"].logger() as log:
        with progress() as show:
            summary = measured(command.config, experiment, folder, show, command.overrides)
            page = reported(folder, show, experiment.evaluator.dataset) if command.config.report else ""
        show_run(summary, folder, directions_of(experiment.evaluator.measures), against_controls(Run(folder)))
        log_and_report(log, folder)
    if page:
        say(page)
    return summary


def show_readers(parts: Sequence[Part], unread: Sequence[UnreadKey]) -> None:
    """A row a key that is read, with its reader; a row a key that nothing reads, with the reason; how many of each."""
    say("each key and the part that reads it")
    rows = []
    for part in parts:
        values = {key: brief(value, _LONGEST) for key, value in part.keys.items()}
        told = values or {part.written: "no keys of its own"}
        rows += [(key, value, part.name, "\n".join(part.taken_by)) for key, value in told.items()]
    show_table(("key", "value", "read by", "which stands at"), rows)
    read = sum(len(part.keys) for part in parts)
    if unread:
        say("keys that nothing reads: whatever they are set to, no number changes")
        show_table(("key", "value", "why"), [(one.key, brief(one.value, _LONGEST), one.reason) for one in unread])
    said = f"{len(unread)} are read by nothing" if unread else "there is no other"
    say(f"{read} keys are read by {len(parts)} parts; {said}")
