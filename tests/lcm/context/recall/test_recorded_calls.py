"""Every call of a tool and every result in recorded sessions is found by grep, and told by describe and expand.

What there is to find is counted by `json.loads`; over real sessions where LCM_DATASETS_DIR has them.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from lcm.context.recall.reader import DescribedMessage
from lcm.errors import TranscriptError
from lcm.store.doctor import scan
from lcm.store.store import Store
from lcm.transcript.passages import passages
from lcm.transcript.reading import READERS, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from tests.lcm.context.recall.dags import TOKENS, fold, recall
from tests.lcm.context.recall.recorded_calls import Recorded, recorded

RECORDINGS = Path(__file__).parents[3] / "recordings"
SMALL = sorted(RECORDINGS.iterdir())
_WORD = re.compile(r"[^\W_]+")
_PLENTY = 10**9


def seen_of(path: Path) -> tuple[list[Recorded], list[str]]:
    """What a file holds, and what of it grep, describe or expand do not give."""
    file = RecordedFile(path)
    with Store() as store:
        store.ingest_pieces(read_pieces(file, reader_of(file)), TOKENS)
        there = recorded(path, {line.line for line in file.quarantine})
        beside = [one for one in file.read_along if ".meta." not in one.name]
        there += [found for one in beside for found in recorded(one)]
        texts = dict(store._connection.execute("SELECT message_id, full_text FROM messages").fetchall())
        spread = Counter(word.lower() for text in texts.values() for word in set(_WORD.findall(text)))
        told = sum(passage.kind == "calls" for message in store.messages() for passage in passages(message))
        reader = recall(limit=10**6, max_expand_tokens=_PLENTY).on(store)
        summaries = [
            fold(store, name, 0, len(store.context(name)), "all of it")
            for name in store.conversations()["conversation_id"]
            if store.context(name)
        ]
        expanded = [
            said.text
            for root in reader.expand(summaries, token_cap=_PLENTY, has_messages=True).roots
            for said in root.messages
        ]
        missing = []
        for one in there:
            words = [word for text in one.texts for word in _WORD.findall(text)] or _WORD.findall(one.name)
            if not words:
                continue
            rarest = min(words, key=lambda word: spread[word.lower()])
            wanted = [*([f"[tool {one.name}]"] if one.name else []), *one.texts]
            hits = reader.grep(rarest, mode="full_text", scope="messages").messages
            number = next((hit.number for hit in hits if all(text in texts[hit.number] for text in wanted)), None)
            if number is None:
                missing.append(f"grep {rarest!r} does not find {one}")
                continue
            described = reader.describe(f"msg#{number}", content=True)
            assert isinstance(described, DescribedMessage)
            if not all(text in described.said.text for text in wanted):
                missing.append(f"describe msg#{number} does not tell {one}")
            if not any(all(text in said for text in wanted) for said in expanded):
                missing.append(f"expand does not tell {one}")
        calls = sum(one.kind == "call" for one in there)
        missing += [f"{path.name}: {calls} calls recorded, {told} told"] if calls != told else []
        checks = {check.name: check for check in scan(store._connection)}
        missing += [finding for name in ("parts_searchable", "messages_fts") for finding in checks[name].findings]
    return there, missing


def test_small_recordings_hide_no_call_and_no_result() -> None:
    found = [seen_of(path) for path in SMALL]
    assert [problem for _, missing in found for problem in missing] == []
    called = {
        path.name.partition(".")[0]
        for path, (there, _) in zip(SMALL, found, strict=True)
        if any(one.kind == "call" for one in there)
    }
    assert called == {reader.name for reader in READERS}


@pytest.mark.full
@pytest.mark.skipif("LCM_DATASETS_DIR" not in os.environ, reason="needs recorded sessions")
def test_real_sessions_hide_no_call_and_no_result() -> None:
    transcripts = Path(os.environ["LCM_DATASETS_DIR"]) / "agent_transcripts"
    found = []
    for path in sorted(transcripts.rglob("*.*")):
        if not path.is_file() or path.name == "README.md":
            continue
        try:
            reader_of(RecordedFile(path))
        except TranscriptError:  # a format that is known and not read
            continue
        found.append(seen_of(path))
    assert [problem for _, missing in found for problem in missing] == []
    kinds = Counter(one.kind for there, _ in found for one in there)
    assert kinds["call"] >= 500
    assert kinds["result"] >= 500
