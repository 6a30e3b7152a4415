"""Tracking: where complete folders are told of, besides the disk that they lie on."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from eval.ladder.losses import Retrieval
from lcm.errors import LcmError


class TrackingError(LcmError):
    """The server did not take the folder; the folder still holds all of it."""


class Log(Protocol):
    def __call__(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str | None:
        """Log a complete folder, or several by one connection; says where to look for the last, or None where nothing
        is logged.

        Args:
            folder: of a run, a sweep, a study, a comparison or a preset: whatever has a summary.
            parent: the folder of the sweep or study that it belongs to, which may be complete later.
        Raises:
            TrackingError: if the server cannot be reached or refuses; what was logged before that stays.
        """
        ...


class Tracking(Protocol):
    """A `tracking` choice: logs complete run folders to a server."""

    @property
    def address(self) -> str | None:
        """The URI of what runs are logged to and found at; None where nothing is logged."""
        ...

    def log(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str | None:
        """`Log`, now and here."""
        ...

    def log_retrievals(self, folder: Path, retrievals: Sequence[Retrieval]) -> str | None:
        """Log a complete run folder, and questions of it as traces; says where to look, None where nothing is logged.

        Raises:
            TrackingError: if the server cannot be reached or refuses.
        """
        ...

    def has(self, folder: Path) -> bool:
        """Whether a complete folder is there already, as far as the folder itself says; asks nobody."""
        ...

    def logger(self) -> AbstractContextManager[Log]:
        """`log`, made ready while something else is done."""
        ...


@dataclass(frozen=True, slots=True)
class NoTracking:
    """Logs nothing: the run folder on disk is all."""

    @property
    def address(self) -> None:
        return None

    def log(self, folder: Path | Sequence[Path], parent: Path | None = None) -> str | None:
        return None

    def log_retrievals(self, folder: Path, retrievals: Sequence[Retrieval]) -> str | None:
        return None

    def has(self, folder: Path) -> bool:
        return True

    def logger(self) -> AbstractContextManager[Log]:
        return nullcontext(self.log)
