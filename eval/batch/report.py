"""The report of a batch: ledgers while it is under way, a Parquet file and a run folder at its end."""

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from eval.batch.sources import SourceReader
from eval.run import CONFIG, SUMMARY, commit, environment, read_summary, write_frame, write_json, write_summary
from eval.tracking.entry import title
from lcm.encoding import to_json, well_formed
from lcm.faults import naming
from lcm.files import private, write_text, written_whole
from lcm.given import plain_bytes
from lcm.records.summary import LEVELS
from lcm.store.store import Store


class LedgerContent(NamedTuple):
    """The rows of a ledger, and the sources that ended."""

    rows: list[dict[str, Any]]
    ended: frozenset[str]
    """The digests of the sources whose rows are all there."""
    damaged: tuple[str, ...]
    """The places of lines that are not as they were written."""
    whole: bytes


@dataclass(frozen=True, slots=True)
class Ledger:
    """A ledger of each source of a shard that was read to its end, in lines that only grow, beside its store.

    The rows of a source are followed by a line that says how many they are, and their sum: a source counts whose rows
    are all there as they were written. Whatever else lies between, cut short by a crash or damaged since, is passed
    over, and its sources are read again, which repeats nothing that is in the store.
    """

    path: Path

    @private()
    def add(self, digest: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put the rows of a source that was read to its end behind those that are there, and on disk."""
        lines = [to_json(row).encode() + b"\n" for row in rows]
        end = {"ended": digest, "rows": len(lines), "sha256": _sum(digest, lines)}
        with naming(self.path), self.path.open("ab+") as file:
            before = file.tell()
            try:
                if before and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                    file.write(b"\n")  # behind what a crash cut short
                file.writelines([*lines, to_json(end).encode() + b"\n"])
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.truncate(self.path, before)
                raise

    def read(self) -> LedgerContent:
        """All that is as it was written; nothing where there is no file."""
        try:
            with naming(self.path):
                content = plain_bytes(self.path)
        except FileNotFoundError:
            content = b""
        rows: list[dict[str, Any]] = []
        ended: list[str] = []
        whole: list[bytes] = []
        damaged: list[int] = []
        waiting: list[tuple[int, bytes]] = []
        """Lines since the last end."""
        for number, line in enumerate(content.splitlines(keepends=True), start=1):
            end = _end(line)
            if end is None:
                waiting.append((number, line))
                continue
            digest, count, sha256 = end
            before = len(waiting) - count
            lines = [one for _, one in waiting[max(before, 0) :]]
            is_whole = before >= 0 and _sum(digest, lines) == sha256
            if is_whole:
                rows += [json.loads(one) for one in lines]
                ended.append(digest)
                whole += [*lines, line]
                waiting = waiting[:before]
            damaged += [at for at, one in waiting if not _is_row(one)] or ([] if is_whole else [number])
            waiting = []
        damaged += [at for at, one in waiting if not _is_row(one)]
        return LedgerContent(rows, frozenset(ended), tuple(f"line {at}" for at in damaged), b"".join(whole))

    def mend(self) -> LedgerContent:
        """Read it, and leave nothing in it but what is as it was written."""
        content = self.read()
        if content.damaged:
            with written_whole(self.path) as file:
                file.write(content.whole)
        return content


def _sum(digest: str, lines: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join([digest.encode(), b"\n", *lines])).hexdigest()


def _end(line: bytes) -> tuple[str, int, str] | None:
    """Read the line that ends a source; None where it is no such line, or not as it was written."""
    if b'"ended"' not in line or not line.endswith(b"\n"):
        return None
    try:
        told = json.loads(line)
        digest, count, sha256 = told["ended"], told["rows"], told["sha256"]
    except (ValueError, KeyError, TypeError):
        return None
    is_one = isinstance(digest, str) and isinstance(count, int) and isinstance(sha256, str) and count >= 0
    return (digest, count, sha256) if is_one else None


def _is_row(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and "digest" in json.loads(line)
    except (ValueError, TypeError):
        return False


REPORT = "report.parquet"
REPORT_SCHEMA: dict[str, pl.DataType] = {
    "shard": pl.Int64(),
    "source": pl.String(),
    "digest": pl.String(),
    "conversation_id": pl.String(),
    "messages": pl.Int64(),
    "tokens_before": pl.Int64(),
    "tokens_after": pl.Int64(),
    "ratio": pl.Float64(),
    "summaries_by_depth": pl.List(pl.Int64()),
    **{f"level_{level}": pl.Int64() for level in LEVELS},
    "methods": pl.String(),
    "reason": pl.String(),
    "seconds": pl.Float64(),
    "refused": pl.String(),
}
"""The columns of the report. A source that was refused has a row without a conversation, and the reason in `refused`.

`ratio` is tokens before by tokens after; `methods` is JSON, summarizer to summaries; `seconds` are those of one run.
"""


def conversation_row(store: Store, shard: int, reading: SourceReader, conversation_id: str) -> dict[str, Any]:
    totals = store.conversation_totals(conversation_id)
    read = reading.conversation(conversation_id)
    depths = [0] * (1 + max((depth for depth, *_ in totals.summaries), default=-1))
    levels, methods = dict.fromkeys(LEVELS, 0), dict[str, int]()
    for depth, level, method, count in totals.summaries:
        depths[depth] += count
        levels[level] += count  # type: ignore[index]  # one of LEVELS
        methods[method] = methods.get(method, 0) + count
    return source_row(shard, reading) | {
        "conversation_id": conversation_id,
        "messages": totals.messages,
        "tokens_before": totals.tokens_before,
        "tokens_after": totals.tokens_after,
        "ratio": totals.tokens_before / totals.tokens_after if totals.tokens_after else 1.0,
        "summaries_by_depth": depths,
        **{f"level_{level}": count for level, count in levels.items()},
        "methods": json.dumps(methods, sort_keys=True),
        "reason": read.failure or ("compacted" if totals.summaries else read.reason),
        "seconds": round(read.seconds, 6),
    }


def source_row(shard: int, reading: SourceReader) -> dict[str, Any]:
    """The columns of every row of a source; of a refused one, the whole row."""
    told = {"shard": shard, "source": well_formed(str(reading.source.path)), "digest": reading.source.digest}
    return {**told, "refused": reading.refused} if reading.refused else told


def read_rows(paths: Sequence[Path]) -> pl.DataFrame:
    """Read what ledgers hold as rows of `REPORT_SCHEMA`: of each conversation of a store, and of each source that was
    refused, the last that was told. So a file that has grown counts once, as it stands now."""
    rows = pl.DataFrame(
        [row for path in paths for row in Ledger(path).read().rows], schema=REPORT_SCHEMA, infer_schema_length=None
    ).with_row_index("told")
    is_refused = pl.col("refused").is_not_null()
    newest = rows.filter(~is_refused).unique(["shard", "conversation_id"], keep="last", maintain_order=True)
    last = rows.group_by("shard", "source").agg(pl.col("told").max())
    refused = rows.filter(is_refused).join(last, ["shard", "source", "told"], "semi", maintain_order="left")
    return pl.concat([newest, refused]).drop("told")


def contexts_note(rows: pl.DataFrame) -> str:
    """How many contexts of a batch were compacted, and how large the largest would be as it was said."""
    kept = rows.filter(pl.col("conversation_id").is_not_null())
    compacted = kept.filter(pl.col("summaries_by_depth").list.sum() > 0).height
    largest = int(kept["tokens_before"].max() or 0)  # type: ignore[arg-type]  # whole numbers
    return f"{compacted} of {kept.height} contexts compacted; the largest had {largest:,} tokens as it was said"


@private()
def write_compaction_run(
    folder: Path,
    rows: pl.DataFrame,
    source: Mapping[str, str],
    identity: str,
    config_text: str,
    seconds: float,
    incidents: Mapping[str, int],
    changed: Mapping[str, Any],
) -> None:
    """Write every file of the folder and, last, its summary; a batch that goes on writes it anew.

    Args:
        source: the name and the digest of all that was taken in.
        identity: the hash of the configuration.
        seconds: that this run of the batch took.
        incidents: what it survived; they add up over the runs of a batch.
        changed: what of the configuration is not the default.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / CONFIG, config_text)
    write_json(folder / "environment.json", environment())
    write_frame(folder / REPORT, rows)
    kept = rows.filter(pl.col("conversation_id").is_not_null())
    before, after = (int(kept[name].sum()) for name in ("tokens_before", "tokens_after"))
    counts = {
        "conversations": kept.height,
        "contexts_compacted": kept.filter(pl.col("summaries_by_depth").list.sum() > 0).height,
        "messages": int(kept["messages"].sum()),
        "refused": rows.height - kept.height,
        "tokens_before": before,
        "tokens_after": after,
        "tokens_saved": before - after,
        "summaries": int(kept["summaries_by_depth"].list.sum().sum()),
        "depth": int(kept["summaries_by_depth"].list.len().max() or 0),  # type: ignore[arg-type]  # whole numbers
        **{f"level_{level}": int(kept[f"level_{level}"].sum()) for level in LEVELS},
    }
    ratio = before / after if after else 1.0
    contexts = f"{counts['contexts_compacted']} of {counts['conversations']} contexts, {ratio:.2f} times smaller"
    survived = Counter(incidents_of(folder))
    survived.update(incidents)
    summary: dict[str, Any] = {
        "dataset": {"name": source["name"], "protocol": "compact", "digest": source["digest"]},
        "title": title([f"compaction into {source['name']}"], [], [contexts]),
        "config_hash": identity,
        "changed": dict(changed),
        "commit": commit(),
        "tags": {"mlflow.source.name": "lcm compact"},
        "counts": counts,
        "incidents": dict(sorted(survived.items())),
        "flags": [contexts_note(rows)],
        "measures": {"compression_ratio": {"value": ratio, "n": kept.height, "low": None, "high": None}},
        "arms": {},
        "categories": {},
        "timing": {"latency_ms": {}, "seconds": {"compact": seconds}},
    }
    write_summary(folder, summary, time.time() - seconds)


def tells_of(folder: Path, source: Mapping[str, str]) -> bool:
    """Whether the summary of a folder is of all that was taken in, and no more."""
    return (folder / SUMMARY).exists() and read_summary(folder)["dataset"].get("digest") == source["digest"]


def incidents_of(folder: Path) -> dict[str, int]:
    """What the runs of a batch survived, by name and times; of a folder without a summary nothing is known."""
    incidents: dict[str, int] = read_summary(folder).get("incidents", {}) if (folder / SUMMARY).exists() else {}
    return incidents
