"""The ledger of a shard: what became of each source that was read to its end, in lines that only grow.

The rows of a source are followed by a line that says how many they are, and their sum: a source counts whose rows are
all there as they were written. Whatever else lies between, cut short by a crash or damaged since, is passed over, and
its sources are read again, which repeats nothing that is in the store.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lcm.encoding import to_json
from lcm.faults import naming
from lcm.files import private, written_whole
from lcm.given import plain_bytes


class LedgerContent(NamedTuple):
    """What a ledger holds."""

    rows: list[dict[str, Any]]
    ended: frozenset[str]
    """The digests of the sources whose rows are all there."""
    damaged: tuple[str, ...]
    """The places of lines that are not as they were written."""
    whole: bytes
    """The lines that are."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """A file of lines beside the store of a shard."""

    path: Path

    @private()
    def add(self, digest: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Put the rows of a source that was read to its end behind those that are there, and on disk."""
        lines = [to_json(row).encode() + b"\n" for row in rows]
        end = {"ended": digest, "rows": len(lines), "sha256": _sum(digest, lines)}
        with naming(self.path), self.path.open("ab") as file:
            before = file.tell()
            try:
                if before and not _ends_whole(self.path):
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
            lines = [one for _, one in waiting[before:]] if before >= 0 else []
            if before >= 0 and _sum(digest, lines) == sha256:
                rows += [json.loads(one) for one in lines]
                ended.append(digest)
                whole += [*lines, line]
                damaged += [at for at, one in waiting[:before] if not _is_row(one)]
            else:
                damaged += [at for at, one in waiting if not _is_row(one)] or [number]
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
    """What a line says of the rows before it; None where it is no such line, or not as it was written."""
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


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as lines:
        lines.seek(-1, os.SEEK_END)
        return lines.read(1) == b"\n"
