"""Forks children that write an index over another, each killed at one of its calls."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers, HnswTiersIndex
from tests.faults.forking import Tell, serve

DIM = 32
SETTINGS = HnswTiers(
    widths=(8, 16, None), exit_thresholds=(0.05, 0.05), rotation="pca", m=8, ef_construction=60,
    tiers_from=0, flat_below=0, exact_below=0,
)  # fmt: skip
OLD, NEW = 300, 450


def unit(count: int, seed: int) -> Vectors:
    """Vectors whose spectrum falls."""
    vectors = np.random.default_rng(seed).standard_normal((count, DIM)) * 0.8 ** np.arange(DIM)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def filled(count: int) -> HnswTiersIndex:
    index = SETTINGS.build(DIM, incidents=Counter())
    index.add([f"d{number}" for number in range(count)], unit(count, 0))
    return index


def main() -> None:
    new = filled(NEW)

    def write(asked: Mapping[str, Any], tell: Tell) -> None:
        """Save until the call or return of number `at`; 0 = to its end, and tell how many there are."""
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1
            if calls == asked["at"]:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.setprofile(count)
        new.save(Path(asked["path"]))
        sys.setprofile(None)
        tell(str(calls))

    serve(write)


if __name__ == "__main__":
    main()
