"""What session rules give over sessions made so that every setting can matter."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from omegaconf import DictConfig

from lcm.memory.memory import Memory
from lcm.memory.session import MessagePreparer, SessionRules, follow_host, live_message
from lcm.memory.session_bootstrap import bootstrap
from lcm.records.conversation import JournalEntry, Message
from lcm.records.summary import Summary
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.rendering import rendered
from pipelines.config import building
from tests.golden.originals.session_turns import ingest
from tests.lcm.memory.session.session_files import NOW, chain, entry, said, shown, write
from tests.support.context_results import digest
from tests.support.workspaces import system

Entries = list[dict[str, Any]]
KEYS = ("agent:main:main", "agent:main:cron:nightly", "agent:main:subagent:1", "")
SAID = {"role": "user", "content": "a"}
HEARTBEAT = (
    {"role": "user", "content": "Read HEARTBEAT.md and act on it"},
    {"role": "assistant", "content": [{"type": "text", "text": "HEARTBEAT_OK"}]},
)


def followed(config: DictConfig) -> Iterator[object]:
    """What is stored and shown of sessions under the rules."""
    rules: SessionRules = building.build(config, "session")
    preparer = MessagePreparer(rules, Utf16Units(), rendered)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "session.jsonl"
        yield _heard(preparer)
        yield _large(preparer)
        yield _heartbeat(rules)
        yield _rolled_over(rules)
        yield _noted(rules)
        yield _imported(preparer, path, _long_file(), [])
        yield _imported(preparer, path, [*chain("a"), *_asked_whether_to_act("e-a")], [])
        yield _imported(preparer, path, chain("a", "b", "c"), _rewritten())
        for stored, missing in ((40, 30), (40, 60), (400, 60)):
            of_file, of_longer = (chain(*map(str, range(count))) for count in (stored, stored + missing))
            yield _imported(preparer, path, of_file, of_longer)


def _kept(store: Store, conversation_id: str) -> object:
    """What is stored, with which large files, and what of it stands in the context."""
    files = [file for message in store.messages(conversation_id) for file in message.files]
    return digest(said(store, conversation_id)), digest(shown(store, conversation_id)), digest(files), len(files)


def _imported(preparer: MessagePreparer, path: Path, first: Entries, then: Entries) -> object:
    """A session file, and the one that took its place."""
    with Store() as store:
        reports = []
        for number, entries in enumerate([first, then] if then else [first]):
            file = write(path.with_stem(f"session {number}"), entries)
            report = bootstrap(store, file, preparer, NOW, "s", "key")
            reports.append((report.imported_messages, report.reason, report.hidden_messages))
        return reports, _kept(store, "key")


def _long_file() -> Entries:
    """Entries of 300 tokens; two of them were abandoned."""
    before = chain(*(f"{i} ".ljust(1200, "a") for i in range(30)))
    left = chain("one way", "and on", parent=before[-1]["id"], prefix="left")
    after = chain(*(f"{i} ".ljust(1200, "b") for i in range(10)), parent=before[-1]["id"], prefix="live")
    return [*before, *left, *after]


def _asked_whether_to_act(parent: str) -> Entries:
    asked, answered = HEARTBEAT
    return [
        entry("asks", parent, asked["content"]),
        {**entry("answers", "asks", "", "assistant"), "message": dict(answered)},
    ]


def _rewritten() -> Entries:
    """Something was put between what is known."""
    a, b, c = chain("a", "b", "c")
    return [a, entry("new", a["id"], "between"), {**b, "parentId": "new"}, c]


def _heard(preparer: MessagePreparer) -> object:
    """Whether sessions are stored, and whether they are assembled."""
    found = []
    for key in KEYS:
        with Store() as store:
            stored = ingest(store, [live_message(SAID, "s", NOW)], preparer, NOW, "s", key)
            found.append((stored, preparer.rules.ignores("s", key), preparer.rules.is_stateless(key)))
    return found


def _large(preparer: MessagePreparer) -> object:
    """Files that a user writes out, of four kinds, and results of tools in their three forms, of 15,000 tokens each and
    twice as many."""
    with Store() as store:
        for times in (1, 2):
            prose = "The harbour mentions cranes and ships. " * 1540 * times
            table = "name,age\n" + "Ada,36\n" * 8600 * times
            result = {"type": "tool_result", "tool_use_id": "c", "content": prose}
            natives: Sequence[dict[str, Any]] = (
                {"role": "user", "content": f'Read <file name="a.txt">{prose}</file> and <file name="b">short</file>'},
                {"role": "user", "content": f'<file name="c.csv">{table}</file>'},
                {"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": prose},
                {"role": "toolResult", "toolCallId": "c", "content": [{"type": "text", "text": prose}]},
                {"role": "user", "content": [result]},
            )
            ingest(store, [live_message(native, "s", NOW) for native in natives], preparer, NOW, "s", "key")
        return _kept(store, "key")


def _heartbeat(rules: SessionRules) -> object:
    with Memory.open(replace(system(), session=rules), ":memory:") as memory:
        for number, turn in enumerate(([SAID], HEARTBEAT)):
            memory.take_turn("key", [live_message(one, "s", NOW, f"{number} {one['role']}") for one in turn])
        return _kept(memory.store, "key")


def _noted(rules: SessionRules) -> object:
    """Of 600 entries of the journal."""
    with Memory.open(replace(system(), session=rules), ":memory:") as memory:
        for number in range(600):
            memory.note_lifecycle(JournalEntry(f"{number:03}", NOW, "session_end", "s"))
        return [entry.entry_id for entry in memory.journal()]


def _rolled_over(rules: SessionRules) -> object:
    """A context of summaries of depth 2, 1 and 0 and of messages, at a new session."""
    with Store() as store:
        heard = MessagePreparer(SessionRules(), Utf16Units(), rendered)
        messages: list[Message] = [live_message({"role": "user", "content": text}, "s", NOW) for text in "abcdef"]
        ingest(store, messages, heard, NOW, "s", "key")
        made = Summary("", "key", "leaf", 0, "words", 2, NOW)
        for name, place, depth in (("a", 0, 0), ("b", 0, 1), ("c", 0, 2), ("d", 1, 0), ("e", 1, 1), ("f", 2, 0)):
            at = store.context("key")[place]
            kind = "condensed" if depth else "leaf"
            folded = replace(made, summary_id=name, kind=kind, depth=depth, source_ids=(at.item_id,))
            store.replace_range("key", at.ordinal, at.ordinal, folded)
        follow_host(store, rules, NOW, "before_reset", "s", {"reason": "new", "session_key": "key"})
        return [item.item_id for item in store.context("key")]
