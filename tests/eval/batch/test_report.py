"""The report of a batch: what the ledgers of its shards come to."""

from pathlib import Path
from typing import Any

from eval.batch.report import REPORT_SCHEMA, Ledger, contexts_note, read_rows


def told(shard: int, source: str, digest: str, **row: Any) -> dict[str, Any]:
    return dict.fromkeys(REPORT_SCHEMA) | {"shard": shard, "source": source, "digest": digest} | row


def conversation(shard: int, source: str, digest: str, name: str, messages: int) -> dict[str, Any]:
    folded = {"summaries_by_depth": [1], "tokens_before": messages, "tokens_after": 1}
    return told(shard, source, digest, conversation_id=name, messages=messages, **folded)


def written(folder: Path, *rows: dict[str, Any]) -> list[Path]:
    """A ledger for each shard; each row is of a source of its own."""
    paths = {row["shard"]: folder / f"shard-{row['shard']:03}.jsonl" for row in rows}
    for row in rows:
        Ledger(paths[row["shard"]]).add(row["digest"], [row])
    return list(paths.values())


def test_a_file_that_has_grown_counts_once_as_it_stands_now(tmp_path: Path) -> None:
    paths = written(
        tmp_path,
        conversation(0, "a", "a at 970", "long", 970),
        conversation(0, "b", "b", "other", 5),
        conversation(0, "a", "a at 1164", "long", 1164),
        conversation(1, "part of p", "p 1/2", "long", 7),  # of another store: another context
    )
    rows = read_rows(paths)
    assert rows.select("shard", "conversation_id", "messages").rows() == [
        (0, "other", 5), (0, "long", 1164), (1, "long", 7)
    ]  # fmt: skip
    assert contexts_note(rows) == "3 of 3 contexts compacted; the largest had 1,164 tokens as it was said"


def test_a_refusal_counts_as_long_as_it_is_the_last_word_on_its_source(tmp_path: Path) -> None:
    paths = written(
        tmp_path,
        told(0, "mended", "m 1", refused="no JSON"),
        conversation(0, "mended", "m 2", "one", 3),
        conversation(0, "broken", "b 1", "two", 4),
        told(0, "broken", "b 2", refused="cut off"),
        told(0, "broken", "b 3", refused="still cut off"),
    )
    rows = read_rows(paths)
    assert rows.select("source", "conversation_id", "refused").rows() == [
        ("mended", "one", None), ("broken", "two", None), ("broken", None, "still cut off")
    ]  # fmt: skip
