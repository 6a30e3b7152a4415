"""lcm compact PATH ... into=FOLDER [triggers=CHOICE] [shards=N] [format=NAME] [GROUP=CHOICE] [KEY=VALUE]

Take recorded transcripts (files, folders, globs, Parquet) into stores, FOLDER/shard-000.db and so on, and compact each
conversation: as a live session would have been, after each turn (triggers=per_turn), or in one sweep at its end of all
before the fresh tail (triggers=at_end, the default). FOLDER/report.parquet has a row for each conversation.

What is made with what: the groups compaction (here lossless by default), summarizer, token_estimator, assembly,
session, tracking, as for `lcm evaluate`, and executor: executor.workers=N processes work on N shards at once, on this
machine (executor=local, the default) or on those of a cluster (executor=ray); there are as many shards as there were
workers at first, or shards=N. --cfg job shows every key.
A file is split between shards only if it is Parquet with a column conversation_id.

The same command again goes on where the last one stopped, even if that was killed; what is done is known by its
content, and a file that has grown adds what is new. Formats are those of `lcm ingest`.
Where a summarizer fails, what was made is kept, and the same command tries again what is not done; once credentials
are refused, no more is summarised.
Exit code 2 if anything was refused or failed, or nothing was taken in; the rest is kept. 1 if nothing is said in what
was read."""

import glob
import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import polars as pl
from filelock import FileLock, Timeout
from omegaconf import DictConfig, OmegaConf

from eval.batch.replay import ReplayParts, Triggers, require_no_admission
from eval.batch.report import REPORT, contexts_note, incidents_of, read_rows, tells_of, write_compaction_run
from eval.batch.shard_work import ShardProgress, ShardWork, SourceReport
from eval.batch.sources import Shard, deciding_settings, shards_of
from eval.configuration import config_hash
from eval.executor import Executor, FailedItem
from eval.mirror import Mirror, origin_of
from eval.run import write_frame
from eval.table import Column
from lcm.errors import LcmError
from lcm.memory.session import MessagePreparer
from lcm.transcript.folders import is_passed_over, recorded_files
from lcm.transcript.reading import in_few_lines, without_formats
from lcm.transcript.recorded_file import RecordedFile
from pipelines.config import building, command_line, contracts
from pipelines.config.presets import changed
from pipelines.ingest import FORMATS, NOTHING_SAID
from pipelines.steps.point import refuse_absent_model
from pipelines.views import terminal
from pipelines.views.progress import progress
from pipelines.views.terminal import kept, log_and_report, say, show_config, warn, warn_in_part

_ROWS = 15
_DEFAULT = "compaction=lossless"
"""Where no choice and no preset says how: whoever calls `lcm compact` wants something compacted."""
_OURS = {"into": "", "triggers": "at_end", "shards": "", "format": "auto"}
_ROOTS = ("compaction", "session", "token_estimator", "assembly", "executor", "tracking")
"""What is built of a configuration."""
_SHOWN = 20
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class PartsFactory:
    """Builds the components of a configuration, wherever it is sent."""

    config: dict[str, Any]
    """Resolved."""

    def __call__(self) -> ReplayParts:
        config: DictConfig = OmegaConf.create(self.config)
        rules, tokens, assembly = (building.build(config, key) for key in ("session", "token_estimator", "assembly"))
        return ReplayParts(building.build(config, "compaction"), MessagePreparer(rules, tokens, assembly.rendered))


@dataclass(slots=True)
class _BatchOutcome:
    """What became of the sources of all shards, as the workers report it."""

    reports: list[SourceReport] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


def main(arguments: Sequence[str]) -> int:
    """`lcm compact PATH ... into=FOLDER [KEY=VALUE ...]`."""
    if not any(argument.startswith(("compaction=", "system=", "experiment=")) for argument in arguments):
        arguments = [_DEFAULT, *arguments]
    command = command_line.read(arguments, "compact", _OURS)
    if command.look is not None:
        return show_config(command)
    if replay := next((one for one in command.overrides if one.startswith("replay=")), None):
        raise LcmError(f"{replay}: a batch is not replayed; write triggers=per_turn or triggers=at_end")
    paths, config, ours = _expanded(command.words), command.config, {**_OURS, **command.own}
    into, triggers, number = _checked(ours)
    contracts.refuse_unused(config, command.overrides, "compact", _ROOTS)
    parts = PartsFactory(building.resolved(config))
    compaction = parts().compaction  # what the workers will build: once here, so that a mistake stops before any work
    require_no_admission(compaction)
    refuse_absent_model(compaction)
    executor, tracking = building.build(config, "executor"), building.build(config, "tracking")
    settings = deciding_settings(parts.config, triggers)
    into.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(into / ".lock", timeout=0), tracking.logger() as log:
            files = [file for file in recorded_files(paths) if into.resolve() not in file.path.resolve().parents]
            if not files:
                raise LcmError("no file to take in: name transcripts, or folders that hold some")
            read = [file for file in files if file.refusal is None]
            shards = shards_of(read, into, number, settings, executor.workers)
            mirrored = origin_of(into)
            work = ShardWork(into, parts, triggers, ours["format"], mirrored.url if mirrored else None)
            outcome = _run(executor, work, shards)
            if mirrored:
                Mirror.of(mirrored.url).fetch()  # what other machines have sent
            rows = read_rows([into / f"{shard.name}.jsonl" for shard in shards])
            write_frame(into / REPORT, rows)
            digests = sorted(source.digest for shard in shards for source in shard.sources)
            whole = {"digest": hashlib.sha256(json.dumps(digests).encode()).hexdigest(), "name": into.name}
            text = OmegaConf.to_yaml(OmegaConf.create({**parts.config, "triggers": triggers}))
            folder = into / "run"
            incidents = sum((Counter(dict(one.incidents)) for one in outcome.reports), Counter[str]())
            if incidents or not tells_of(folder, whole) or not all(one.was_done for one in outcome.reports):
                differs = changed(config, command.overrides)
                if triggers != _OURS["triggers"]:
                    differs["triggers"] = triggers
                digest = config_hash(settings)
                write_compaction_run(folder, rows, whole, digest, text, outcome.seconds, incidents, differs)
            is_all_done = _tell(outcome, files, paths)
            if is_all_done and all(one.was_done for one in outcome.reports):
                say(f"Nothing is left to do: all of it is compacted in {into} already")
            show_batch(rows, incidents_of(folder), into, len(shards))
            log_and_report(log, folder)
    except Timeout as error:
        raise LcmError(f"into={into}: another `lcm compact` is at work there; wait for it") from error
    taken = [one for one in outcome.reports if one.refused is None]
    if outcome.reports and not taken:  # as `lcm ingest` ends with the same files
        raise LcmError(f"nothing was taken in; lcm reads: {FORMATS}")
    if taken and not outcome.failed and all(one.is_silent for one in taken):
        warn(NOTHING_SAID)
        return 1
    return 0 if is_all_done else 2


def _expanded(arguments: Sequence[str]) -> list[Path]:
    """The paths that are there, and those that a pattern finds."""
    paths: list[Path] = []
    for argument in arguments:
        found = [] if Path(argument).exists() else sorted(glob.glob(argument, recursive=True))  # noqa: PTH207  # any path, absolute too
        paths += map(Path, found or [argument])
    return list(dict.fromkeys(paths))


def _checked(ours: dict[str, str]) -> tuple[Path, Triggers, int | None]:
    if not ours["into"]:
        raise LcmError("into=FOLDER is missing: where the stores and the report go")
    into = Path(ours["into"])
    if into.is_file():
        raise LcmError(f"into={into} is a file: name a folder")
    if ours["format"] not in ("auto", *FORMATS.split(", ")):
        raise LcmError(f"lcm does not read the transcript format {ours['format']!r}; choose one of: auto, {FORMATS}")
    if ours["triggers"] not in get_args(Triggers):
        raise LcmError(f"triggers must be one of: {', '.join(sorted(get_args(Triggers)))}, got {ours['triggers']!r}")
    shards = ours["shards"]
    if shards and not (shards.isdecimal() and 1 <= int(shards) <= 999):
        raise LcmError(f"shards must be a whole number from 1 to 999, got {shards!r}")
    return into, ours["triggers"], int(shards) if shards else None  # type: ignore[return-value]  # checked above


def _run(executor: Executor, work: ShardWork, shards: Sequence[Shard]) -> _BatchOutcome:
    before = {shard.number: work.earlier_reports(shard) for shard in shards}
    outcome = _BatchOutcome([one for told in before.values() for one in told or ()])
    shards = [shard for shard in shards if before[shard.number] is None]
    started = time.perf_counter()
    done: dict[int, float] = {}
    total = max(1, sum(source.size_bytes for shard in shards for source in shard.sources) // _MIB)
    with progress() as show, closing(executor.map(work, shards)) as told:
        for said in told:
            match said:
                case ShardProgress(shard, bytes_done, _):
                    done[shard] = bytes_done
                    show("compacting, MiB", int(sum(done.values())) // _MIB, total)
                case SourceReport():
                    outcome.reports.append(said)
                case FailedItem(item, reason):
                    outcome.failed.append(f"{shards[item].name}: {reason}")
    outcome.seconds = time.perf_counter() - started
    return outcome


def _tell(outcome: _BatchOutcome, files: Sequence[RecordedFile], named: Sequence[Path]) -> bool:
    """Say what was put aside, refused or failed; returns whether all is done but what may be passed over."""
    by_path = {file.path: file for file in files}
    warn_in_part("put aside", [line for one in outcome.reports for line in one.put_aside])
    warn_in_part("doubtful", in_few_lines([doubt for one in outcome.reports for doubt in one.doubts]))
    passed_over = [file.refusal for file in files if file.refusal]
    refused = []
    for one in outcome.reports:
        if one.refused is not None and is_passed_over(by_path[one.source.path], named):
            passed_over.append(without_formats(one.refused))
        elif one.refused is not None:
            refused.append(one.refused)
    warn_in_part("passed over", passed_over)
    for reason in refused:
        warn(f"not taken in: {reason}")
    failures = Counter(failure for one in outcome.reports for failure in one.failures)
    for failure, times in failures.most_common(_SHOWN):
        conversations = f"{times} conversation{'s' if times > 1 else ''}"
        warn(f"not compacted to the end: {conversations}: {failure}; the same command tries again")
    for failure in outcome.failed:
        warn(f"stopped: {failure}; the same command goes on from there")
    return not (refused or failures or outcome.failed)


def show_batch(rows: pl.DataFrame, incidents: Mapping[str, int], into: Path, shards: int) -> None:
    """Print the rows of a batch's report, what was survived, and where its stores lie."""
    there = rows.filter(pl.col("conversation_id").is_not_null())
    if there.is_empty():
        say("No conversation was compacted.")
        return
    numbers = (Column(name, "number", 2) for name in ("messages", "tokens", "after", "ratio", "by depth"))
    say("compacted; by depth: summaries, leaves first")
    terminal.show_table(("conversation", *numbers, "levels, or why none"), _shown(there))
    terminal.show_incidents(incidents)
    say(f"note: {contexts_note(rows)}")
    kept(into, f" ({shards} store{'s' if shards != 1 else ''}, {REPORT})")


def _shown(kept: pl.DataFrame) -> Iterator[list[Any]]:
    """The conversations that were compacted most, and all together."""
    levels = [name for name in kept.columns if name.startswith("level_")]
    largest = kept.sort("tokens_before", descending=True, maintain_order=True).head(_ROWS)
    for row in largest.iter_rows(named=True):
        cells = _cells(row, row["summaries_by_depth"], levels)
        why = [] if row["summaries_by_depth"] else [row["reason"] or "-"]
        yield [row["conversation_id"], *(cells[:-1] + why if why else cells)]
    if kept.height > 1:
        sums = kept.select(pl.col("messages", "tokens_before", "tokens_after", *levels).sum()).row(0, named=True)
        by_depth = [
            int(kept["summaries_by_depth"].list.get(depth, null_on_oob=True).sum())
            for depth in range(kept.select(pl.col("summaries_by_depth").list.len().max()).item() or 0)
        ]
        yield [f"{kept.height} conversations", *_cells(sums, by_depth, levels)]


def _cells(row: dict[str, Any], by_depth: Sequence[int], levels: Sequence[str]) -> list[Any]:
    ratio = row["tokens_before"] / row["tokens_after"] if row["tokens_after"] else 1.0
    pressed = ", ".join(f"{row[level]} {level.removeprefix('level_')}" for level in levels if row[level])
    return [
        row["messages"], row["tokens_before"], row["tokens_after"], ratio,
        " / ".join(map(str, by_depth)) or "-", pressed or "-",
    ]  # fmt: skip
