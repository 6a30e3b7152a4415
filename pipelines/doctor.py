"""lcm doctor STORE ... [repair=true]

Check every rule of a store, or of each store of a folder that `lcm compact` made: pages and references, that every
message is what was recorded, is searched with all that its parts say, and is reached from the context or by recall,
that summaries form a tree over contiguous messages of their own conversation, their values and totals, the full-text
tables, and summaries that were cut.

repair=true first copies the store beside it, then works anew what follows from the rest: full-text tables, what the
parts of messages say, and the totals of summaries, these two unless what they are made of is damaged too. Messages and
the words of summaries are never touched.
Exit code 0: nothing is wrong (a warning may be); 1: something is; 2: it cannot be checked."""

import glob
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from lcm.errors import LcmError, StoreError
from lcm.faults import StoreFaultError
from lcm.store.connection import connect, transaction
from lcm.store.derived import FULL_TEXT, rebuild_words, recompute_totals
from lcm.store.doctor import DoctorCheck, broken_lineage, scan
from lcm.store.migrations import MIGRATIONS, schema_version
from lcm.store.parts_texts import write_parts_texts
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import say, show_table

_SHOWN = 3


def main(arguments: Sequence[str]) -> int:
    """`lcm doctor STORE ... [repair=true]`."""
    command = told_apart(arguments, ("repair",), is_configured=False)
    is_repair = command.flag("repair")
    if not command.words:
        raise LcmError("name a store to check, or a folder that `lcm compact` made")
    paths = [store for path in command.words for store in _stores(Path(path))]
    return max(_examined(path, is_repair=is_repair, is_named=len(paths) > 1) for path in paths)


def _examined(path: Path, *, is_repair: bool, is_named: bool) -> int:
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
    except StoreFaultError as error:
        copies = sorted(path.parent.glob(f"{glob.escape(path.name)}.*.backup"))
        raise LcmError(f"{error}; the last copy beside it: {copies[-1]}" if copies else str(error)) from error
    show_table(("check", "outcome", "found", "such as"), map(_row, checks), numbers=("found",))
    wrong = [check for check in checks if check.status == "fail"]
    if any(check.is_derived for check in wrong):
        say("repair=true works anew: " + ", ".join(c.name for c in wrong if c.is_derived))
    broken = broken_lineage(checks)
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
                rebuild_words(connection, table)
        if "summary_totals" in wrong:
            recompute_totals(connection)


def back_up(connection: sqlite3.Connection, path: Path, now: datetime) -> Path:
    """Copy a store, as it is on this connection, to a file beside it that is not there yet."""
    copy = path.with_name(f"{path.name}.{now:%Y%m%dT%H%M%S}.backup")
    number = 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.{now:%Y%m%dT%H%M%S}-{number}.backup")
    with closing(sqlite3.connect(copy)) as target:
        connection.backup(target)
    return copy


def _stores(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if not (found := sorted(path.glob("shard-*.db"))):
        raise LcmError(f"{path} is a folder without stores of `lcm compact`; name a store")
    return found


def _opened(path: Path) -> sqlite3.Connection:
    """Open a store as it is.

    Raises:
        LcmError: if it is none, or of another version than this program's.
    """
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
        remedy = "write to it once, with lcm ingest or lcm compact" if 0 < found < known else "name a store of this one"
        raise LcmError(f"{path} has schema version {found}, this program checks {known}: {remedy}")
    return connection


def _row(check: DoctorCheck) -> tuple[str, str, str, str]:
    shown = [*check.findings[:_SHOWN], *(["..."] if len(check.findings) > _SHOWN else [])]
    return check.name, check.status, f"{len(check.findings):,}", "\n".join(shown)
