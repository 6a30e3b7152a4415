"""A coding session's own compactions beside ours: the same span of messages, folded by each.

Run: python experiments/pi_compaction.py SESSION.jsonl[.gz] [GROUP=CHOICE ...]
The session is one of pi or OpenClaw with `compaction` entries. A span is what an entry newly folded: from the first
message that the compaction before it kept to the first that it kept itself. Ours folds all of it (no fresh tail).
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from rich.console import Console
from rich.table import Table

from eval.measures.measure import REPORT_TOKENS
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.records.conversation import Message, Transcript
from lcm.store.store import Store
from lcm.transcript.reading import read_transcripts
from pipelines.config.building import build
from pipelines.config.composition import composed

WRITING = {"edit", "write"}
SETTINGS = (
    ("lossless_claw", "truncate"),
    ("lossless_claw", "extractive"),
    ("lossless", "truncate"),
    ("lossless", "extractive"),
)


def spans(transcript: Transcript) -> Iterator[tuple[Sequence[Message], str, int]]:
    """The messages that each compaction of the session folded, its summary, and the tokens it counted before."""
    before = [event.after for event in transcript.events]
    start = 0
    for event in transcript.events:
        if event.kind == "compaction":
            kept = _messages_before(event.native["firstKeptEntryIndex"], before)
            yield transcript.messages[start:kept], event.native["summary"], event.native["tokensBefore"]
            start = kept


def _messages_before(entry: int, events: Sequence[int]) -> int:
    """How many of the first `entry` entries are messages; `events[i]` messages stand before event i."""
    passed = 0
    while passed < len(events) and events[passed] + passed < entry:
        passed += 1
    return entry - passed


def written_files(messages: Sequence[Message]) -> set[str]:
    """The paths that tools were asked to write."""
    paths: set[str] = set()
    for message in messages:
        for part in message.parts:
            raw: Any = part.metadata.get("raw")
            if isinstance(raw, dict) and raw.get("name") in WRITING:
                path = (raw.get("arguments") or {}).get("path")
                paths |= {path} if isinstance(path, str) else set()
    return paths


def ours(messages: Sequence[Message], compaction: str, summarizer: str, overrides: Sequence[str]) -> tuple[str, int]:
    """What a full sweep leaves of the messages, and how many summaries it made."""
    config = composed(
        [
            f"compaction={compaction}",
            f"summarizer={summarizer}",
            "compaction.fresh_tail_count=0",
            "assembly=lossless",
            *overrides,
        ]
    )
    chosen, assembly, tokens = (build(config, key) for key in ("compaction", "assembly", "token_estimator"))
    with Store() as store:
        store.append("span", messages, tokens, assembly.rendered)
        window, said, incidents = StoredWindow(store, "span"), store.last_said("span"), Counter[str]()
        work = chosen.compact(window, said, incidents=incidents, is_forced=True)
        report = run(work, chosen.summarizer, incidents=incidents)
        return "\n\n".join(record.content for record in store.context_records("span")), len(report.summary_ids)


def main(arguments: Sequence[str]) -> None:
    (transcript,) = read_transcripts(Path(arguments[0]))
    out = Console(width=140)
    for number, (messages, summary, counted) in enumerate(spans(transcript), start=1):
        messages = [replace(message, message_id=f"{i}") for i, message in enumerate(messages)]
        assembly = build(composed(["assembly=lossless"]), "assembly")
        before = sum(REPORT_TOKENS.count([assembly.rendered(message) for message in messages]))
        files = written_files(messages)
        table = Table("compaction", "summarizer", "summaries", "tokens before", "tokens after", "ratio", "files named")
        rows = [("the session's own", "its model", 1, summary)]
        for compaction, summarizer in SETTINGS:
            text, made = ours(messages, compaction, summarizer, arguments[1:])
            rows.append((compaction, summarizer, made, text))
        for compaction, summarizer, made, text in rows:
            after = REPORT_TOKENS.count([text])[0]
            named = sum(PurePosixPath(path).name in text for path in files)
            cells = (str(made), f"{before:,}", f"{after:,}", f"{before / after:.1f}", f"{named} of {len(files)}")
            table.add_row(compaction, summarizer, *cells)
        out.print(
            f"compaction {number}: {len(messages)} messages; the session counted {counted:,} tokens, prompt included"
        )
        out.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
