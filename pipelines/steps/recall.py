"""What the commands of recall share: their settings, the store they open, and how they print."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError
from lcm.faults import told
from lcm.memory.scopes import Identity, Scopes, identified
from lcm.store.store import Store
from pipelines.config import building, command_line, conf_folder
from pipelines.config.arguments import CommandArguments
from pipelines.views.terminal import survived, warn

STORE_VARIABLE = "LCM_DATABASE_PATH"


def read_arguments(arguments: Sequence[str], keys: Sequence[str]) -> CommandArguments:
    """Tell the words of a command from its settings: KEY=VALUE of a known key or group is one, all else is a word."""
    known = {"store", "json", *keys}
    words, settings, overrides = [], {}, []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if equals and key in known:
            settings[key] = value
        elif equals and key.lstrip("+~").partition(".")[0] in conf_folder.groups():
            overrides.append(argument)
        elif equals and (near := get_close_matches(key, known, n=1, cutoff=0.75)):
            raise LcmError(f"no such key: {key!r}; did you mean {near[0]}? Quote words that hold a =: '{argument}'")
        elif argument.startswith("--") and argument != "--" and not equals:
            raise LcmError(f"no such option: {argument!r}; settings are written KEY=VALUE")
        else:
            words.append(argument)
    return CommandArguments(tuple(words), settings, tuple(overrides))


def one_word(command: CommandArguments, what: str, name: str) -> str:
    """The one word of a command."""
    got = ", ".join(map(repr, command.words)) or "nothing"
    return command.word(f"name one {what} (quote spaces), got {got}; `lcm {name} --help` tells more")


def no_words(command: CommandArguments) -> None:
    """Refuse words where a command takes settings alone."""
    if command.words:
        raise LcmError(f"this command takes KEY=VALUE alone, got {command.words[0]!r}; a store is named by store=FILE")
    if command.overrides:
        raise LcmError(f"this command has no configuration, got {command.overrides[0]!r}")


def now() -> datetime:
    """The one clock of these commands."""
    return datetime.now(UTC)


def named_store(command: CommandArguments) -> Path:
    """The file of the store that was named; what is no store is refused before anything opens it for writing."""
    named = command.settings.get("store") or os.environ.get(STORE_VARIABLE, "")
    if not named:
        raise LcmError(f"store=FILE is missing, and ${STORE_VARIABLE} names none; `lcm ingest` makes a store")
    path = Path(named).expanduser()
    if path.is_dir():
        stores = ", ".join(sorted(one.name for one in path.glob("*.db"))) or "none here"
        raise LcmError(f"{str(path)!r} is a folder; name one of its stores: {stores}")
    if not path.is_file():
        raise LcmError(f"there is no store {str(path)!r}; `lcm ingest ... into={path}` makes one")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            found = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'schema_migrations'").fetchone()
    except sqlite3.Error as error:
        is_other = error.sqlite_errorcode == sqlite3.SQLITE_NOTADB
        line = None if is_other else told(error, path)
        raise LcmError(line or f"{str(path)!r} is no store of lcm: {error}") from error
    if not found[0]:
        raise LcmError(f"{str(path)!r} is no store of lcm: it has no schema_migrations")
    return path


def opened_store(command: CommandArguments) -> Store:
    """The store that was named."""
    return Store(named_store(command))


@contextmanager
def opened(command: CommandArguments) -> Iterator[tuple[Recall, Reader]]:
    """Recall as configured, on the store that was named, as the agent reads it that was; tells at the end what it
    survived."""
    config = command_line.read(command.overrides, "recall").config
    recall: Recall = building.build(config, "recall")
    asker = named_asker(command, building.build(config, "scopes"))
    with opened_store(command) as store:
        reader = recall.on(store, None if asker.scopes is None else asker.reads_conversation)
        yield recall, reader
        for what, times in reader.incidents.items():
            warn(survived(what, times))


def named_asker(command: CommandArguments, rules: Scopes) -> Identity:
    """Who asks, by `agent=`; nobody named = the owner of the store."""
    agent = command.settings.get("agent")
    try:
        return identified(rules, agent)
    except ValueError as error:
        raise LcmError(f"agent={agent}: {error}") from error
