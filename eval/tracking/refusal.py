"""Why MLflow did not take something, or give it."""

from pathlib import Path
from sqlite3 import Error

from lcm import faults

_LONGEST = 160


def is_silence(error: BaseException) -> bool:
    """Whether a server did not answer: asked once more, it would be waited for as long again."""
    from requests.exceptions import ConnectionError as NoConnection  # here, because only servers need it
    from requests.exceptions import Timeout

    return isinstance(error.__cause__ or error.__context__, NoConnection | Timeout)


def reason_of(error: BaseException, database: Path | None = None) -> str:
    """On one line; what a database refuses with its path and a remedy."""
    if (fault := faults.told(error, database) or _fault_below(error, database)) is not None:
        return fault
    if is_silence(error):
        return "it does not answer: see whether it runs, and can be reached from here"
    reason = " ".join(str(error).split())
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."


def _fault_below(error: BaseException, database: Path | None) -> str | None:
    """What SQLite complained of, which MLflow tells with the statement and without a remedy."""
    cause = error.__cause__ or error.__context__
    while cause is not None and not isinstance(cause, Error):
        cause = getattr(cause, "orig", None) or cause.__cause__ or cause.__context__
    return None if cause is None else faults.told(cause, database)
