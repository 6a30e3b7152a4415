"""The tracking choice that logs nothing."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from eval.ladder.losses import Retrieval
from eval.tracking.tracking import Log


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
