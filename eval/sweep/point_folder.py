"""The folder of a point: what it is, before it runs; then its numbers, or why there are none."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.run_folder import SUMMARY, read_summary, write_whole
from eval.sweep.origin import Origin
from lcm.errors import LcmError

POINT = "point.json"
FAILURE = "failure.json"


@dataclass(frozen=True, slots=True)
class PointFolder:
    path: Path

    def begin(self, origin: Origin, overrides: Sequence[str]) -> None:
        """Make the folder, empty but for what it will hold.

        Raises:
            LcmError: if there are files in it that no sweep wrote.
        """
        if any((self.path / ours).is_file() for ours in (POINT, FAILURE)):
            shutil.rmtree(self.path)
        elif self.path.is_dir() and any(self.path.iterdir()):
            raise LcmError(f"{self.path} holds something else than a point of a sweep: name another hydra.sweep.dir")
        self.path.mkdir(parents=True, exist_ok=True)
        told = {**asdict(origin), "overrides": list(overrides)}
        write_whole(self.path / POINT, json.dumps(told, indent=2) + "\n")

    def fail(self, reason: str) -> None:
        """Keep why there are no numbers."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_whole(self.path / FAILURE, json.dumps({"error": reason}, indent=2, ensure_ascii=False) + "\n")

    def is_complete(self) -> bool:
        return (self.path / SUMMARY).is_file()

    def is_of(self, origin: Origin) -> bool:
        """Whether what it holds has this origin."""
        try:
            told = json.loads((self.path / POINT).read_text())
        except (OSError, ValueError):
            return False
        return bool(asdict(origin).items() <= told.items())

    def summary(self) -> dict[str, Any] | None:
        """Of a complete run; None where it did not finish."""
        return read_summary(self.path) if self.is_complete() else None

    def failure(self) -> str | None:
        """Why it did not finish, if it was tried; one line."""
        path = self.path / FAILURE
        return None if self.is_complete() or not path.is_file() else str(json.loads(path.read_text())["error"])
