"""What a person is told: lines, tables, warnings, and where the result lies."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from eval.table import INTERVALS, Column, Table
from eval.tracking.tracking import Log, TrackingError
from lcm.encoding import printable
from lcm.files import from_here
from lcm.redaction import redacted
from pipelines.config.command_line import Command, shown
from pipelines.views.output import PipeSafeConsole, as_json, folder_of, output, tell_beside
from pipelines.views.progress import working

_SHOWN = 20


def console() -> Console:
    """A console as wide as the terminal, or as `COLUMNS` says; of 80 columns where output goes to a file or a pipe."""
    return PipeSafeConsole(soft_wrap=True)


def warn(message: str) -> None:
    if not output().is_quiet:
        tell_beside(f"lcm: warning: {message}")


def warn_in_part(what: str, lines: Sequence[str]) -> None:
    """Warn of each line; of many, of the first, and how many there are."""
    for line in lines[:_SHOWN]:
        warn(f"{what}: {line}")
    if len(lines) > _SHOWN:
        warn(f"{len(lines)} {what} in all")


def say(text: str) -> None:
    """Print words as they are, without colours or markup."""
    console().print(printable(redacted(text)), highlight=False, markup=False)


def say_where(text: str) -> None:
    """Say where a page is served: on stderr where standard output is for a program."""
    (say if output().is_for_people else tell_beside)(text)


def kept(place: Path, more: str = "", verb: str = "Kept") -> None:
    """Say where the result of a command lies: its last line but what is logged, and all that is left of it for
    `--quiet`."""
    place = from_here(place)
    output().place = place
    if output().is_quiet and not output().is_json:
        sys.stdout.write(f"{printable(redacted(str(folder_of(place) or place)))}\n")
    else:
        say(f"{verb}: {place}{more}")


def tell_json(value: Any) -> None:
    """The result of a command, as itself has it for a program."""
    output().result = value
    if output().is_for_people:
        say(as_json(value))


def show(table: Table, rest: str = "") -> None:
    """Print the fullest form of a table that fits, its caption above it, below it its notes and where the rest lies; a
    program gets all of it."""
    if not output().is_for_people:
        output().tables.append(table)
        drawn, lacking = None, list[str]()
    else:
        drawn, lacking = table.terminal(console().width)
    if table.caption:  # what it says of intervals holds where they are shown
        say(table.caption.partition(" [")[0] if INTERVALS in lacking else table.caption)
    if drawn is not None:
        console().print(drawn, highlight=False, soft_wrap=False)
    for note in table.notes:
        say(note)
    if lacking:
        say(f"{_named(table, lacking)} in a wider terminal{f'; {rest}' if rest else ''}")


def _named(table: Table, lacking: Sequence[str]) -> str:
    """The columns that are not shown; of means only how many."""
    means = sum(column.kind == "mean" and column.title in lacking for column in table.columns)
    others = [column.title for column in table.columns if column.kind != "mean" and column.title in lacking]
    told = [*others, *([f"{means} more measures"] if means else []), *(one for one in lacking if one == INTERVALS)]
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def show_table(columns: Sequence[Column | str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table; a title alone is that of a column of words."""
    show(Table([Column(one, "label") if isinstance(one, str) else one for one in columns], list(rows)))


def brief(value: object, most: int | None = None) -> str:
    """A value in one line, text as it is and all else as JSON; of what is longer the beginning."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if most is None or len(text) <= most else f"{text[: most - 3]}..."


def show_config(command: Command) -> int:
    """Print the configuration that a command looks at; returns the exit code."""
    say(shown(command).rstrip("\n"))
    return 0


def log_and_report(log: Log, folder: Path, parent: Path | None = None) -> bool:
    """Log a complete folder and say where; whether tracking works."""
    try:
        with working("logging"):
            where = log(folder, parent)
    except TrackingError as error:
        warn(str(error))
        return False
    if where and parent is None:
        say(f"Logged: {where}")
    return True


def show_incidents(incidents: Mapping[str, int]) -> None:
    """What failed and was survived, by name and times."""
    for what, times in incidents.items():
        say(survived(what, times))


def survived(what: str, times: int) -> str:
    """What failed and was survived, and how often."""
    return f"survived: {what}, {'once' if times == 1 else f'{times:,} times'}"
