"""lcm doctor STORE ... [repair=true|summaries] [GROUP=CHOICE ...]

Check every rule of a store, or of each store of a folder that `lcm compact` made: pages and references, that every
message is what was recorded, is searched with all that its parts say, and is reached from the context or by recall,
that summaries form a tree over contiguous messages of their own conversation, their values and totals, the full-text
tables, and summaries that do harm: no smaller than their sources, the beginning of these, or without the user's rules.

repair=true first copies the store beside it, then works anew what follows from the rest: full-text tables, what the
parts of messages say, and the totals of summaries, these two unless what they are made of is damaged too. Messages and
the words of summaries are never touched.
repair=summaries copies it, too, and has a summarizer (summarizer=extractive, or any choice with its settings) make
harmful summaries again, leaves first, all in one transaction; where it has nothing better they stay.
Exit code 0: nothing is wrong (a warning may be); 1: something is; 2: it cannot be checked."""

import glob
import itertools
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from eval.table import Column
from lcm.compaction.lossless.planning import LosslessSettings
from lcm.compaction.resummarising import harmful_summaries, resummarise
from lcm.errors import LcmError, StoreError
from lcm.faults import StoreFaultError
from lcm.store import doctor
from lcm.store.doctor import FULL_TEXT, DoctorCheck, scan
from lcm.store.messages import write_parts_texts
from lcm.store.sqlite import connect, transaction
from lcm.store.store import MIGRATIONS, Store, schema_version
from pipelines.config.arguments import told_apart
from pipelines.config.building import build
from pipelines.config.composition import composed
from pipelines.views.terminal import say, show_table, warn

_SHOWN = 3
_SHOWN_CHARACTERS = 80


def main(arguments: Sequence[str]) -> int:
    """`lcm doctor STORE ... [repair=true]`."""
    command = told_apart(arguments, ("repair",), is_configured="repair=summaries" in arguments)
    repair = command.choice("repair", ("false", "true", "summaries"), "false")
    if not command.words:
        raise LcmError("name a store to check, or a folder that `lcm compact` made")
    paths: list[Path] = []
    for path in map(Path, command.words):
        if path.is_dir() and not any(path.glob("shard-*.db")):
            raise LcmError(f"{path} is a folder without stores of `lcm compact`; name a store")
        paths += sorted(path.glob("shard-*.db")) if path.is_dir() else [path]
    compaction: LosslessSettings | None = None
    if repair == "summaries":
        compaction = build(composed(["compaction=lossless", *command.overrides]), "compaction")
    is_named = len(paths) > 1
    return max(_examined(path, compaction, is_repair=repair == "true", is_named=is_named) for path in paths)


def _examined(path: Path, compaction: LosslessSettings | None, *, is_repair: bool, is_named: bool) -> int:
    """Check one store; returns the exit code that it alone would give."""
    if is_named:
        say(f"{path}:")
    try:
        with closing(_opened(path)) as connection:
            checks = scan(connection)
            if is_repair and any(check.status == "fail" and check.is_derived for check in checks):
                copy = back_up(connection, path, datetime.now(UTC))
                say(f"Copied first: {copy}")
                repair(connection, checks)
                checks = scan(connection)
            if compaction is not None:
                _resummarise(connection, path, compaction)
                checks = scan(connection)
            if not any(check.status == "fail" for check in checks):
                checks = [*checks, *harm_checks(path)]
    except StoreFaultError as error:
        copies = sorted(path.parent.glob(f"{glob.escape(path.name)}.*.backup"))
        raise LcmError(f"{error}; the last copy beside it: {copies[-1]}" if copies else str(error)) from error
    rows = []
    for one in checks:
        shown = [*one.findings[:_SHOWN], *(["..."] if len(one.findings) > _SHOWN else [])]
        rows.append((one.name, one.status, len(one.findings), "\n".join(shown)))
    show_table(("check", "outcome", Column("found", "number"), "such as"), rows)
    wrong = [check for check in checks if check.status == "fail"]
    if any(check.is_derived for check in wrong):
        say("repair=true works anew: " + ", ".join(c.name for c in wrong if c.is_derived))
    broken = doctor.broken_lineage(checks)
    if broken and any(check.name == "summary_totals" for check in wrong):
        say("summary_totals waits until these find nothing: " + ", ".join(broken))
    return 1 if wrong else 0


def repair(connection: sqlite3.Connection, checks: Sequence[DoctorCheck]) -> None:
    """Work anew what is derived and wrong, as one transaction."""
    wrong = {check.name for check in checks if check.status == "fail" and check.is_derived}
    with transaction(connection):
        if "parts_searchable" in wrong:
            write_parts_texts(connection)
        for table in FULL_TEXT:
            if table in wrong:
                doctor.rebuild_words(connection, table)
        if "admission_scores" in wrong:
            doctor.rebuild_scores(connection)
        if "summary_totals" in wrong:
            doctor.recompute_totals(connection)


def harm_checks(path: Path) -> list[DoctorCheck]:
    """What summaries do that they should not, of a store whose rows can be read."""
    with Store(path) as store:
        found = harmful_summaries(store)
    told: dict[str, list[str]] = {"summaries_smaller": [], "summaries_summarise": [], "summaries_keep_rules": []}
    for one in found:
        name, harm = f"summary {one.summary.summary_id}", one.harm
        if harm.is_no_smaller:
            told["summaries_smaller"].append(f"{name}: {one.summary.token_count:,} tokens of {one.source_tokens:,}")
        if harm.is_cut and not doctor.mark_of(one.summary.content):  # those with a mark are told by `summaries_whole`
            told["summaries_summarise"].append(f"{name} is the beginning of its source")
        told["summaries_keep_rules"] += [f"{name} lost: {rule[:_SHOWN_CHARACTERS]}" for rule in harm.lost_rules]
    return [DoctorCheck(name, "warn" if lines else "pass", tuple(lines)) for name, lines in told.items()]


def _resummarise(connection: sqlite3.Connection, path: Path, compaction: LosslessSettings) -> None:
    """Make the harmful summaries of a store again, after a copy of it is made; say what became of them."""
    with Store(path) as store:
        if not (found := harmful_summaries(store)):
            say("no summary does harm: nothing is made again")
            return
        say(f"Copied first: {back_up(connection, path, datetime.now(UTC))}")
        incidents: Counter[str] = Counter()
        done = resummarise(store, compaction, incidents=incidents)
    say(f"{len(done.made)} of {len(found)} harmful summaries made again, {len(done.left)} left as they were")
    for incident, count in sorted(incidents.items()):
        warn(f"{incident} ({count}x)")


def back_up(connection: sqlite3.Connection, path: Path, now: datetime) -> Path:
    """Copy a store, as it is on this connection, to a file beside it that is not there yet."""
    endings = (f"-{number}" if number > 1 else "" for number in itertools.count(1))
    copies = (path.with_name(f"{path.name}.{now:%Y%m%dT%H%M%S}{ending}.backup") for ending in endings)
    copy = next(copy for copy in copies if not copy.exists())
    with closing(sqlite3.connect(copy)) as target:
        connection.backup(target)
    return copy


def _opened(path: Path) -> sqlite3.Connection:
    """Open a store as it is, of this program's version."""
    if not path.is_file():
        raise LcmError(f"{path}: no such file")
    connection = connect(path)
    try:
        found, known = schema_version(connection), MIGRATIONS[-1].version
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreError(f"{path} cannot be read: {error}") from error
    if found != known:
        connection.close()
        if not found:
            raise LcmError(f"{path} is no store of lcm (its schema has no version): name one that lcm wrote")
        remedy = "write to it once, with lcm ingest or lcm compact" if found < known else "name a store of this one"
        raise LcmError(f"{path} has schema version {found}, this program checks {known}: {remedy}")
    return connection
