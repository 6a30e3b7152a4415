"""Faults of disks and files: what the system and SQLite complain of, as one line with path and remedy."""

import errno
import logging
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lcm.errors import LcmError, StoreError

_log = logging.getLogger(__name__)
_ROOM = "make room and give the same command again: what is whole is kept"
_OF_MACHINE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: f"raise the limit on the size of files (ulimit -f), or {_ROOM}",
    errno.EROFS: "name a folder that can be written",
    errno.EMFILE: "raise the limit on open files (ulimit -n) and give the same command again",
    errno.ENFILE: "close programs that hold many files and give the same command again",
    errno.EIO: "look after the disk, then give the same command again",
    errno.ENOMEM: "free memory and give the same command again",
}
"""What no other input would mend -> the remedy."""
_ELSEWHERE = "name a path that can be used"
_RESTORE = "restore a copy of it, or move it away and make it again with the command that made it"
_SQLITE = {
    sqlite3.SQLITE_FULL: ("the disk is full", _ROOM),
    sqlite3.SQLITE_IOERR: ("the disk refuses", f"look after the disk and its limits, or {_ROOM}"),
    sqlite3.SQLITE_READONLY: ("it cannot be written", "name a file that can, in a folder that can"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "name a file that can, in a folder that can be written"),
    sqlite3.SQLITE_NOMEM: ("memory is full", "free memory and give the same command again"),
    sqlite3.SQLITE_CORRUPT: ("it is damaged", _RESTORE),
    sqlite3.SQLITE_NOTADB: ("it is damaged, or no database", _RESTORE),
}
"""What of SQLite's errors is no defect of a statement -> what is wrong, and the remedy."""
_UNEXPLAINED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
_IN_MEMORY = ("", ":memory:")
_FILES_OF_A_COMMAND = 16
"""At least so many may be open beside what is: a database alone takes four, itself, its log with its index, and the
folder, and some of those were closed again when it refused."""
_SQLITE_OF_MACHINE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM)
_counting: list[Counter[str]] = []
"""Those of each `counting` that is open, in whatever thread: what is damaged is so for all."""


class DamagedError(LcmError):
    """A file is not as it was written."""


class MachineFaultError(LcmError):
    """The machine refuses, as a full disk does: what another process told of it, with path and remedy."""


class StoreFaultError(StoreError, sqlite3.DatabaseError):
    """The file of a store is damaged, or the system refuses it; told with its path and the remedy."""


def told(error: BaseException, path: Path | str | None = None) -> str | None:
    """One line with the path, what is wrong and the remedy; None where the error is of another kind.

    Args:
        path: of the file, where the error does not name it.
    """
    if isinstance(error, StoreFaultError | MachineFaultError):
        return str(error)
    if isinstance(error, OSError) and error.strerror is not None:
        where = path if error.filename is None else error.filename
        remedy = _OF_MACHINE.get(error.errno or 0, _ELSEWHERE)
        return f"{'' if where is None else f'{os.fspath(where)}: '}{error.strerror}; {remedy}"
    if isinstance(error, sqlite3.Error):
        wrong, remedy = _SQLITE.get(_code(error), (None, _RESTORE))
        if wrong is None and "decode to UTF-8" in str(error):
            wrong = "it is damaged"
        if wrong is not None:
            reason = " ".join(str(error).split())
            return f"{'the database' if path is None else path}: {wrong} ({reason[:200]}); {remedy}"
    cause = getattr(error, "orig", None)  # SQLAlchemy wraps SQLite's
    if cause is None and not isinstance(error, LcmError) and is_of_machine(error.__cause__):
        cause = error.__cause__
    return None if cause is None else told(cause, path)


def refused(error: Exception, path: Path | str) -> "MachineFaultError | None":
    """The fault of the machine behind an error of the database at a path; None where there is none."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, sqlite3.Error):
        cause = getattr(cause, "orig", None) or cause.__cause__
    reason = reason_of(error if cause is None else cause, path)
    return MachineFaultError(str(told(reason, path))) if is_of_machine(reason) else None


def is_of_machine(error: BaseException | None) -> bool:
    """Whether the machine, rather than what was asked of it, is the reason: a full disk and the like."""
    while error is not None:
        if isinstance(error, MachineFaultError) or (isinstance(error, OSError) and error.errno in _OF_MACHINE):
            return True
        if isinstance(error, sqlite3.Error) and _code(error) in _SQLITE_OF_MACHINE:
            return True
        error = error.__cause__ or getattr(error, "orig", None)
    return False


def reason_of(error: Exception, path: Path | str) -> Exception:
    """What the system says itself, where SQLite says no more of a file than that it cannot be opened or written, or a
    library nothing at all."""
    is_unexplained = isinstance(error, sqlite3.Error) and _code(error) in _UNEXPLAINED
    if not (is_unexplained or isinstance(error, AssertionError)) or str(path) in _IN_MEMORY:
        return error
    try:
        there = Path(path) if Path(path).exists() else Path(path).parent
        is_read_only = os.statvfs(there).f_flag & os.ST_RDONLY
        with ExitStack() as opened:
            for _ in range(_FILES_OF_A_COMMAND):
                opened.callback(os.close, os.open(there, os.O_RDONLY))
    except OSError as system:
        return system if system.errno in _OF_MACHINE else error
    return OSError(errno.EROFS, os.strerror(errno.EROFS), str(path)) if is_read_only else error


def refuse_emptied(path: Path, but: str, remedy: str, refusal: type[LcmError] = LcmError) -> None:
    """Refuse a database without a byte where there is a sign that it held some: SQLite would take it for a new one.

    Args:
        but: the sign.
        remedy: what else may be done than to restore a copy.
    """
    if path.exists() and not path.stat().st_size:
        raise refusal(f"{path} is empty, but {but}: restore a copy, or {remedy}")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let what the system complains of inside name the path, where it names none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.strerror is not None:
            error.filename = str(path)
        raise


@contextmanager
def counting(incidents: Counter[str]) -> Iterator[None]:
    """Count in `incidents` what is found damaged inside and made again, by name and times."""
    _counting.append(incidents)
    try:
        yield
    finally:
        _counting[:] = [one for one in _counting if one is not incidents]


def made_again(what: str, reason: str) -> None:
    """Tell of a damaged file that is made again: as a warning, and as an incident of every `counting` that is open.

    Args:
        what: the file holds, such as `recorded reply`.
        reason: one line that names the file.
    """
    _log.warning("%s", reason)
    for incidents in _counting:
        incidents[f"damaged {what}"] += 1


def _code(error: sqlite3.Error) -> int:
    """Without the part that says where in SQLite it was noticed."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
