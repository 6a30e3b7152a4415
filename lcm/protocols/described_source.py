"""What a ranking asks of a source that keeps what rankings begin with."""

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import polars as pl

from lcm.protocols.retrieval import Batch, Expansion, Source, Stage


@runtime_checkable
class DescribedSource(Source, Protocol):
    """A source that keeps what its candidates are, so that it can put the documents' columns beside them itself; and
    what the first steps of a ranking make of them."""

    def described(self, batch: Batch) -> pl.DataFrame:
        """The candidates as `describe` gives them."""
        ...

    def begun(
        self, steps: Sequence[tuple[str, Stage | Expansion]], batch: Batch
    ) -> tuple[int, pl.DataFrame, Counter[str]]:
        """How many of the first steps need not be passed again, the rows behind them, and the incidents of passing
        them."""
        ...
