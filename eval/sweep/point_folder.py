"""The folder of a point: what it is, before it runs; then its numbers, or why there are none."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from eval.external.contract import is_fault
from eval.run import POINT, SUMMARY, point_record, read_summary
from eval.sweep.origin import Origin
from lcm.derived import SUM, SUMS, changed_in, sealed, unsealed
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.files import write_text
from lcm.given import plain_bytes
from lcm.redaction import redacted_record

FAILURE = "failure.json"
_POINT_KEYS = (*(field.name for field in fields(Origin)), "overrides")
_NAMING_KEYS = ("label", "objectives")
"""Which older points do not have."""


@dataclass(frozen=True, slots=True)
class PointFolder:
    path: Path

    def begin(self, origin: Origin, overrides: Sequence[str], label: str = "", objectives: Sequence[str] = ()) -> None:
        """Make the folder, empty but for what it will hold. Stopped at any moment, it can be begun again.

        Args:
            label: what the point is called among the others.
            objectives: the measures that points are chosen by, where that is known before any ran.
        Raises:
            LcmError: if there are files in it that no sweep wrote.
        """
        if not self._is_ours():
            raise LcmError(f"{self.path} holds something else than a point of a sweep: name another hydra.sweep.dir")
        self.clear()
        begun = self._beside("new")
        shutil.rmtree(begun, ignore_errors=True)  # of one that was stopped here
        told = {**asdict(origin), "overrides": list(overrides), "label": label}
        told = sealed(redacted_record({**told, "objectives": list(objectives)}))
        write_text(begun / POINT, json.dumps(told, indent=2) + "\n")
        begun.replace(self.path)

    def clear(self) -> None:
        """Remove the folder with all that it holds; what is half removed has another name, and looks like no run."""
        removed = self._beside("old")
        shutil.rmtree(removed, ignore_errors=True)  # of one that was stopped here
        if self.path.is_dir():
            if self.is_complete():
                (self.path / SUMMARY).replace(self.path / f"{SUMMARY}.old")
            self.path.replace(removed)
            shutil.rmtree(removed)

    def fail(self, reason: str) -> None:
        """Keep why there are no numbers; not among files that no sweep wrote, which would then be taken for a point."""
        if self._is_ours():
            self.path.mkdir(parents=True, exist_ok=True)
            write_text(self.path / FAILURE, json.dumps({"error": reason}, indent=2, ensure_ascii=False) + "\n")

    def is_complete(self) -> bool:
        return (self.path / SUMMARY).exists()

    def damaged(self) -> Path | None:
        """The first file of a complete run that is not as it was written."""
        path = self.path / SUMMARY
        try:
            read_summary(self.path)
            path = self.path / POINT
            told = _read(path)
        except (LcmError, OSError, ValueError) as error:
            if is_of_machine(error):
                raise
            return path
        return path if told is None else changed_in(self.path)

    def without_sum(self) -> str | None:
        """What of a complete run of this lcm, which has sums of all, lost its own: one line that names it."""
        if not (self.path / SUMS).exists():
            return f"{self.path / SUMS} is missing"
        unsummed = [name for name in (SUMMARY, POINT) if SUM not in json.loads(plain_bytes(self.path / name))]
        return f"{self.path / unsummed[0]} lost its sum" if unsummed else None

    def is_of(self, origin: Origin) -> bool:
        """Whether what it holds has this origin, and no fault disturbed an external memory, which may answer now."""
        if self._is_disturbed():
            return False
        try:
            told = json.loads(plain_bytes(self.path / POINT))
        except (OSError, ValueError):
            return False
        return isinstance(told, dict) and bool(asdict(origin).items() <= told.items())

    def _is_disturbed(self) -> bool:
        try:
            incidents = json.loads(plain_bytes(self.path / SUMMARY)).get("incidents", ())
        except (LcmError, OSError, ValueError, AttributeError):  # none, or damaged, which `damaged` tells
            return False
        return any(map(is_fault, incidents))

    def overrides(self) -> list[str]:
        """Of which its configuration was composed; empty where nobody began it."""
        return list(point_record(self.path).get("overrides", ()))

    def summary(self) -> dict[str, Any] | None:
        """Of a complete run; None where it did not finish."""
        return read_summary(self.path) if self.is_complete() else None

    def failure(self) -> str | None:
        """Why it did not finish, if it was tried; one line."""
        path = self.path / FAILURE
        if self.is_complete() or not path.is_file():
            return None
        try:
            return str(json.loads(plain_bytes(path))["error"])
        except (ValueError, KeyError, TypeError):
            return f"{path} is damaged: nobody knows why it failed; the same command tries it again"

    def _is_ours(self) -> bool:
        """Whether it is a point's, or no one's: not there, or without anything but a failure."""
        if (self.path / POINT).exists() or not self.path.is_dir():
            return True
        return all(one.name == FAILURE or one.name.startswith(f".{FAILURE}.") for one in self.path.iterdir())

    def _beside(self, kind: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{kind}")


def _read(path: Path) -> dict[str, Any] | None:
    """None where it is not as it was written."""
    told = json.loads(plain_bytes(path))
    keys = [name for name in _NAMING_KEYS if isinstance(told, dict) and name in told]
    return unsealed(told, (*_POINT_KEYS, *keys))
