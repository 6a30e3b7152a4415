"""Judgements on disk: one JSON object a line, written to the end alone, each on disk before the next is asked for."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from eval.judging.judgement import KEYS, Judgement
from lcm.encoding import to_json
from lcm.errors import LcmError
from lcm.given import read_whole

FILE = "judgements.jsonl"


class JudgementFile:
    """The judgements of a folder, of whichever judges; what is added is on disk when `add` returns."""

    def __init__(self, folder: Path) -> None:
        """Read what is there; half a line at the end, of a process that was killed, is cut off. Where nothing is, the
        folder is made when something is added.

        Raises:
            LcmError: naming the line that is no judgement.
        """
        self.path = folder / FILE
        self._judgements: list[Judgement] = []
        content = read_whole(self.path) if self.path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if _is_whole(content[len(whole) :]):  # an editor left out the end of the line
            whole = content + b"\n"
            with self.path.open("ab") as file:
                file.write(b"\n")
        elif len(whole) < len(content):
            os.truncate(self.path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            self._judgements.append(self._read(number, line))

    def add(self, judgements: Iterable[Judgement]) -> None:
        """Write judgements to the end of the file, and wait until they are on disk."""
        added = list(judgements)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write("".join(f"{to_json(one.record())}\n" for one in added).encode())
            file.flush()
            os.fsync(file.fileno())
        self._judgements += added

    def of(self, judge: str) -> dict[tuple[str, str], Judgement]:
        """(query, document) -> what a judge last said of it, but for what was withdrawn; in the order of judging."""
        return {pair: one for pair, one in self._last(judge).items() if one.state != "withdrawn"}

    def judges(self) -> dict[str, str]:
        """Judge -> which kind of judge it is, in the order of appearance."""
        return {one.judge: one.kind for one in self._judgements}

    def __iter__(self) -> Iterator[Judgement]:
        """What stands of every judge."""
        for judge in self.judges():
            yield from self.of(judge).values()

    def _last(self, judge: str) -> dict[tuple[str, str], Judgement]:
        last: dict[tuple[str, str], Judgement] = {}
        for one in self._judgements:
            if one.judge == judge:
                last.pop(one.pair, None)
                last[one.pair] = one
        return last

    def _read(self, number: int, line: bytes) -> Judgement:
        try:
            record = json.loads(line)
            return Judgement(**{key: record[key] for key in KEYS})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LcmError(f"{self.path} line {number} is no judgement ({error}): mend it, or take it out") from error


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
