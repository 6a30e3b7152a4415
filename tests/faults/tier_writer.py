"""A warm process that forks a child to write an index over another, killed at one of its calls.

Reads a line of JSON a child from stdin: where, and at which call; 0: to its end. Writes how it ended and after how many
calls, a line of JSON each.
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import numpy as np

from lcm.protocols.models import Vectors
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers, HnswTiersIndex

DIM = 32
SETTINGS = HnswTiers(
    widths=(8, 16, None),
    exit_thresholds=(0.05, 0.05),
    rotation="pca",
    m=8,
    ef_construction=60,
    tiers_from=0,
    flat_below=0,
    exact_below=0,
)
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
    for line in sys.stdin:
        asked = json.loads(line)
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            write(new, Path(asked["path"]), asked["at"], theirs)
        os.close(theirs)
        with os.fdopen(ours) as told:
            said = told.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"status": status, "calls": int(said or 0)}), flush=True)


def write(index: HnswTiersIndex, path: Path, at: int, channel: int) -> None:
    """In the child: save, killed at the call or return of that number."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)
    index.save(path)
    sys.setprofile(None)
    os.write(channel, str(calls).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
