"""The commands that read a store: grep, describe, expand, expand-query, status and journal, each with its help."""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import cast, get_args

from eval.table import Column, Table
from lcm.clock import format_instant
from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.grep import Grep, Mode, Scope, minute, one_line
from lcm.context.recall.reader import Reader, described_text
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError
from lcm.faults import told
from lcm.memory.scopes import Identity, Scopes, identified
from lcm.store.conversations import read_entries
from lcm.store.doctor import census
from lcm.store.store import Store
from pipelines.config import building, command_line, conf_folder
from pipelines.config.arguments import CommandArguments
from pipelines.views.terminal import say, show, show_table, survived, tell_json, warn

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


def settings_alone(arguments: Sequence[str], keys: Sequence[str]) -> CommandArguments:
    """The settings of a command that takes nothing else."""
    command = read_arguments(arguments, keys)
    if command.words:
        raise LcmError(f"this command takes KEY=VALUE alone, got {command.words[0]!r}; a store is named by store=FILE")
    if command.overrides:
        raise LcmError(f"this command has no configuration, got {command.overrides[0]!r}")
    return command


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
def opened(command: CommandArguments) -> Iterator[tuple[Recall, Reader, str | int | None]]:
    """Recall as configured, on the store that was named, as the agent reads it that was, and the conversation that was,
    None = all; tells at the end what it survived."""
    config = command_line.read(command.overrides, "recall").config
    recall: Recall = building.build(config, "recall")
    asker = named_asker(command, building.build(config, "scopes"))
    with opened_store(command) as store:
        reader = recall.on(store, None if asker.scopes is None else asker.reads_conversation)
        yield recall, reader, reader.conversation(command.settings.get("conversation"))
        for what, times in reader.incidents.items():
            warn(survived(what, times))


def named_asker(command: CommandArguments, rules: Scopes) -> Identity:
    """Who asks, by `agent=`; nobody named = the owner of the store."""
    agent = command.settings.get("agent")
    try:
        return identified(rules, agent)
    except ValueError as error:
        raise LcmError(f"agent={agent}: {error}") from error


def grep(arguments: Sequence[str]) -> int:
    """lcm grep PATTERN store=FILE [KEY=VALUE ...]

    Search messages, those that no longer stand in a context too, and summaries.

      lcm grep "database timeout" store=memory.db
      lcm grep 'error: \\w+' mode=regex scope=messages since=2026-01-05 limit=10
      lcm grep 会議 conversation=ryokou json=true

      mode=full_text         or regex, in the syntax of Python's package regex
      scope=both             or messages, summaries
      since=... before=...   ISO 8601, UTC unless it names a zone
      limit=50               of messages, and again of summaries
    $RECALL"""
    keys = ("mode", "scope", "conversation", "agent", "since", "before", "limit")
    command = read_arguments(arguments, keys)
    pattern = one_word(command, "pattern", "grep").strip()
    if not pattern:
        raise LcmError("the pattern must say what to search for, got nothing")
    mode = cast("Mode", command.choice("mode", get_args(Mode), "full_text"))
    scope = cast("Scope", command.choice("scope", get_args(Scope), "both"))
    with opened(command) as (_, reader, conversation):
        found = reader.grep(
            pattern,
            mode=mode,
            scope=scope,
            conversation=conversation,
            since=command.instant("since"),
            before=command.instant("before"),
            limit=command.number("limit"),
        )
    if found.is_refused:
        raise LcmError("; ".join(found.notes))
    if command.flag("json"):
        hits = {name: [hit._asdict() for hit in getattr(found, name)] for name in ("messages", "summaries")}
        tell_json({**hits, "notes": list(found.notes)})
    else:
        _show_found(found)
    for note in found.notes:
        warn(note)
    return 0


def _show_found(found: Grep) -> None:
    if not found.total:
        say("No matches found.")
        return
    rows = [(f"msg#{hit.number}", hit.conversation_id, hit.role, hit.created_at, hit.snippet) for hit in found.messages]
    rows += [(hit.summary_id, hit.conversation_id, hit.kind, hit.created_at, hit.snippet) for hit in found.summaries]
    is_one = len({conversation for _, conversation, *_ in rows}) == 1
    told = [
        (name, *(() if is_one else (conversation,)), what, minute(at), one_line(snippet))
        for name, conversation, what, at, snippet in rows
    ]
    titles = ("id", *(() if is_one else ("conversation",)), "what", "when", "words")
    show(Table(list(map(Column, titles)), told, f"conversation {rows[0][1]}" if is_one else ""))


def describe(arguments: Sequence[str]) -> int:
    """lcm describe ID store=FILE [KEY=VALUE ...]

    Tell what is known of a summary (sum_...), a large file (file_...) or a message (msg#..., or the id that it was
    recorded with): words and calls of tools, time, what it was made of, and what expanding it would cost.

      lcm describe sum_972f60d23b50311a store=memory.db
      lcm describe 'msg#21' store=memory.db
      lcm describe file_0123456789abcdef content=true store=memory.db > whole.txt

      content=true           the whole text of a file or a message, and nothing else
      token_cap=4000         a longer message is clipped to it, with a mark; of a summary it marks what can be expanded
    $RECALL"""
    command = read_arguments(arguments, ("conversation", "agent", "content", "token_cap"))
    item_id = one_word(command, "id", "describe")
    content = command.flag("content")
    with opened(command) as (_, reader, conversation):
        described = reader.describe(
            item_id,
            conversation=conversation,
            token_cap=command.number("token_cap"),
            content=content,
        )
    if command.flag("json"):
        tell_json(asdict(described))
    else:
        say(described_text(described, is_bare=content))
    return 0


def expand(arguments: Sequence[str]) -> int:
    """lcm expand ID ... store=FILE [KEY=VALUE ...]

    Read what summaries were made of, down to the messages with their calls of tools; or a message (msg#...) itself, or
    the one that holds a large file (file_...).

      lcm expand sum_972f60d23b50311a store=memory.db
      lcm expand sum_972f60d23b50311a sum_aee0293518474c82 depth=5 messages=false token_cap=20000

      depth=3                steps downwards; the messages of a leaf are one
      token_cap=4000         of all that is read; the message that does not fit is clipped, with a mark
      messages=true          the messages of leaves too; false: summaries alone
    $RECALL"""
    command = read_arguments(arguments, ("conversation", "agent", "depth", "token_cap", "messages"))
    if not command.words:
        raise LcmError("name the summaries to expand; `lcm expand --help` tells more")
    has_messages = command.flag("messages", default=True)
    with opened(command) as (recall, reader, conversation):
        found = reader.expand(
            command.words,
            depth=command.number("depth"),
            token_cap=command.number("token_cap"),
            has_messages=has_messages,
            conversation=conversation,
        )
    if command.flag("json"):
        tell_json({**asdict(found), "cited_ids": found.cited_ids})
    else:
        say(distilled_text(found, recall.rules))
        if not has_messages and not any(root.children for root in found.roots):
            say("No summary lies beneath, only messages: messages=true shows them")
    return 0


def expand_query(arguments: Sequence[str]) -> int:
    """lcm expand-query PROMPT store=FILE [query=WORDS] [ids=ID,ID] [KEY=VALUE ...]

    Have a question answered from what summaries were made of. Reading begins at what is named (summaries, messages,
    files), and at the summaries that hold all words of the query, or whose messages do.

      lcm expand-query "Why did the migration fail?" query="migration failed" store=memory.db
      lcm expand-query "Which port?" ids=sum_972f60d23b50311a token_cap=8000
      lcm expand-query "A port?" query=port answerer=llm language_model=openai_compatible language_model.base_url=...

      max_tokens=2000        of the answer
      token_cap=4000         of all that is read for it
    $RECALL"""
    command = read_arguments(arguments, ("conversation", "agent", "query", "ids", "max_tokens", "token_cap"))
    prompt = one_word(command, "question", "expand-query")
    ids = [one for part in command.settings.get("ids", "").split(",") if (one := part.strip())]
    query = command.settings.get("query", "")
    if not ids and not query.strip():
        raise LcmError("query=WORDS or ids=ID,ID must say where to begin to read; `lcm grep` finds ids")
    with opened(command) as (recall, reader, conversation):
        answered = recall.expand_query(
            reader,
            prompt,
            now,
            summary_ids=ids,
            query=query,
            conversation=conversation,
            max_tokens=command.number("max_tokens"),
            token_cap=command.number("token_cap"),
        )
    if command.flag("json"):
        tell_json({**asdict(answered.answer), "route": asdict(answered.route), "conversations": answered.conversations})
    else:
        say(answered.text)
    return 0


def status(arguments: Sequence[str]) -> int:
    """lcm status store=FILE [json=true]

    Count what a store holds: messages and their tokens, contexts, summaries, documents by kind, protected messages,
    authored blocks, journal entries; and what waits: messages of which no documents were made yet, failed compactions.

      lcm status store=memory.db"""
    command = settings_alone(arguments, ())
    with opened_store(command) as store, store.reading() as connection:
        found = census(connection)
    if command.flag("json"):
        tell_json(found)
        return 0
    rows = list[tuple[str, object]]()
    for name, value in found.items():
        if isinstance(value, dict):
            rows += ((f"{name}: {kind}", count) for kind, count in value.items())
        else:
            rows.append((name, value if isinstance(value, int) else value or ""))
    show_table(("what", Column("count", "number")), rows)
    return 0


def journal(arguments: Sequence[str]) -> int:
    """lcm journal store=FILE [KEY=VALUE ...]

    Show the newest entries of the journal, oldest first: what a host said before it reset a session or when one ended.
    The journal is advice: nothing is found in it, and nothing depends on it. Of too many entries the oldest are dropped
    when one is added (session.journal_max_entries).

      lcm journal store=memory.db session=s1

      session=ID             of one session; else of all
      limit=50               entries at most
      json=true              everything as JSON"""
    command = settings_alone(arguments, ("session", "limit"))
    with opened_store(command) as store, store.reading() as connection:
        entries = read_entries(connection, command.settings.get("session"), command.number("limit") or 50)
    if command.flag("json"):
        tell_json([asdict(entry) for entry in entries])
        return 0
    if not entries:
        say("The journal is empty.")
        return 0
    rows = []
    for entry in entries:
        said = json.dumps(dict(entry.fields), ensure_ascii=False) if entry.fields else ""
        rows.append((format_instant(entry.happened_at), entry.hook, entry.session_id, said))
    show_table(("when", "hook", "session", "what else was said"), rows)
    return 0
