"""Leaves of recorded sessions by two versions of a summarizer: printed side by side, read blind, and counted.

    python experiments/leaves.py make LEAVES.jsonl [GROUP=CHOICE ...]     forty leaves by this version
    python experiments/leaves.py facts BEFORE.jsonl AFTER.jsonl           what stands in them, at equal targets
    python experiments/leaves.py pairs BEFORE.jsonl AFTER.jsonl SEED      side by side, sides drawn by the seed
    python experiments/leaves.py count SEED CHOICES                       AB=AABB...: which version was preferred
    python experiments/leaves.py session SESSION [KEY=VALUE ...]          all leaves of one session, whole

`make` takes ten chunks of each of four kinds of session from LCM_DATASETS_DIR, as `compaction=lossless` cuts and shows
them, and asks for 200 tokens of each. The version before is a checkout of its commit, named in PYTHONPATH.
"""

import json
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from lcm.compaction.facts.ledger import Ledger, standings
from lcm.compaction.lossless.source_text import source_of_messages
from lcm.compaction.window import StoredWindow
from lcm.compaction.work import run
from lcm.errors import TranscriptError
from lcm.records.conversation import Message, Transcript
from lcm.records.summary import SummaryRequest
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.reading import read_transcripts
from pipelines.config.building import build
from pipelines.config.composition import composed

KINDS = {
    "coding agent": ("pi_session/before-compaction.jsonl.gz", 8000),
    "customer service": ("openai_chat_tools/tau_airline_dev.jsonl.gz", 3000),
    "shell agent": ("swe_agent", 6000),
    "chat": ("sharegpt/sharegpt_test_7uOhOjo.json.gz", 3000),
}
"""Each kind of session: where it lies below agent_transcripts, and the tokens of a chunk."""
EACH = 10
TARGET = 200
TOKENS = Utf16Units()


def chunks(place: str, tokens: int) -> list[list[Message]]:
    """Neighbouring messages of so many tokens, of every session of a kind; a shorter end is left out."""
    folder = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts" / place
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else [folder]:
        for transcript in transcripts(path):
            chunk, size = [], 0
            for number, message in enumerate(transcript.messages):
                if message.role == "system":
                    continue
                chunk.append(replace(message, message_id=f"{transcript.conversation_id} {number}"))
                size += TOKENS.count([message.content])[0]
                if size >= tokens:
                    found.append(chunk)
                    chunk, size = [], 0
    return found


def transcripts(path: Path) -> list[Transcript]:
    try:
        return list(read_transcripts(path))
    except TranscriptError:
        return []


def sampled() -> Iterator[tuple[str, list[Message]]]:
    """Ten chunks of each kind, at equal distances."""
    for kind, (place, tokens) in KINDS.items():
        known = chunks(place, tokens)
        for number in range(EACH):
            yield kind, known[number * len(known) // EACH]


def make(path: Path, overrides: Sequence[str]) -> None:
    summarizer = build(composed(overrides), "summarizer")
    chosen = list(sampled())
    sources = [source_of_messages(messages, "corrected", "UTC").text for _, messages in chosen]
    results = summarizer.summarize([SummaryRequest(source, TARGET) for source in sources], incidents=Counter())
    with path.open("w", encoding="utf-8") as file:
        for (kind, messages), result in zip(chosen, results, strict=True):
            row = {"kind": kind, "first": messages[0].message_id, "messages": len(messages), "text": result.text}
            file.write(json.dumps(row | {"tokens": TOKENS.count([result.text])[0]}) + "\n")


def facts(before: list[dict], after: list[dict]) -> None:
    for (_, messages), *rows in zip(sampled(), before, after, strict=True):
        ledger = Ledger.of(messages)
        for row in rows:
            assert row["first"] == messages[0].message_id, "the file holds leaves of other chunks"
            row["facts"] = Counter(standings(ledger, (), [row["text"]]).values())
    print(
        "| kind | leaves | tokens | retained | missing | mutated | stale | tokens | retained | missing | mutated | stale |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for kind in [*KINDS, "all"]:
        cells = []
        for rows in (before, after):
            own = [row for row in rows if kind in (row["kind"], "all")]
            total = sum((Counter(row["facts"]) for row in own), Counter())
            shares = (f"{total[name] / total.total():.3f}" for name in ("retained", "missing", "mutated", "stale"))
            cells.append(f"{sum(row['tokens'] for row in own) / len(own):.0f} | {' | '.join(shares)}")
        print(f"| {kind} | {len(own)} | {' | '.join(cells)} |")


def sides(seed: int) -> list[bool]:
    """Of each pair, whether the version before is side A."""
    rng = Random(seed)
    return [rng.random() < 0.5 for _ in range(EACH * len(KINDS))]


def pairs(before: list[dict], after: list[dict], seed: int) -> None:
    for number, (is_before, old, new) in enumerate(zip(sides(seed), before, after, strict=True), start=1):
        assert old["first"] == new["first"], "the two files hold leaves of different chunks"
        first, second = (old, new) if is_before else (new, old)
        print(f"\n=== {number}: {old['kind']}, {old['messages']} messages")
        print(f"--- A\n{first['text']}\n--- B\n{second['text']}")


def count(seed: int, choices: str) -> None:
    preferred: defaultdict[str, Counter[str]] = defaultdict(Counter)
    kinds = [kind for kind in KINDS for _ in range(EACH)]
    for kind, is_before, choice in zip(kinds, sides(seed), choices, strict=True):
        preferred[kind]["tie" if choice == "=" else "before" if (choice == "A") is is_before else "after"] += 1
    print("| kind | after | before | tie |\n|---|--:|--:|--:|")
    for kind in [*KINDS, "all"]:
        own = preferred[kind] if kind != "all" else sum(preferred.values(), Counter())
        print(f"| {kind} | {own['after']} | {own['before']} | {own['tie']} |")


def session(path: Path, overrides: Sequence[str]) -> None:
    config = composed(["compaction=lossless", "assembly=lossless", "compaction.fresh_tail_count=0", *overrides])
    compaction, assembly = build(config, "compaction"), build(config, "assembly")
    (transcript,) = read_transcripts(path)
    with Store() as store:
        store.append("s", transcript.messages, TOKENS, assembly.rendered)
        window, incidents = StoredWindow(store, "s"), Counter()
        run(
            compaction.compact(window, store.last_said("s"), incidents=incidents, is_forced=True),
            compaction.summarizer,
            incidents=incidents,
        )
        for number, leaf in enumerate((one for one in store.summaries() if one.kind == "leaf"), start=1):
            covered = f"{len(leaf.source_ids)} messages, {leaf.source_message_token_count:,} tokens"
            print(f"--- {number}: {covered} to {leaf.token_count:,}\n{leaf.content}")


def read(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", path, *overrides]:
            make(Path(path), overrides)
        case ["facts", before, after]:
            facts(read(before), read(after))
        case ["pairs", before, after, seed]:
            pairs(read(before), read(after), int(seed))
        case ["session", path, *overrides]:
            session(Path(path), overrides)
        case ["count", seed, choices]:
            count(int(seed), choices)
        case _:
            sys.exit(__doc__)
