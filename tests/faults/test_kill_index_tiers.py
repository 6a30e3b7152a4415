"""kill -9 at any call while index tiers are written: the old index is there or the new one, and it answers rightly."""

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from lcm.retrieval.vector_index.exact import Exact
from tests.faults.tier_writer import DIM, NEW, OLD, SETTINGS, filled, unit

POINTS, LAST = 120, 4
RECALL = 0.95


@pytest.mark.full
def test_a_killed_save_leaves_the_old_index_or_the_new_one(root: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    filled(OLD).save(before / "index")
    oracles = {}
    for count in (OLD, NEW):
        oracles[count] = Exact().build(DIM, incidents=Counter())
        oracles[count].add([f"d{number}" for number in range(count)], unit(count, 0))
    asked = unit(20, 1)
    found_counts, repaired = set(), 0
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.tier_writer"],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:

        def written(path: Path, at: int) -> dict[str, int]:
            writer.stdin.write(json.dumps({"path": str(path), "at": at}) + "\n")
            writer.stdin.flush()
            return json.loads(writer.stdout.readline())

        shutil.copytree(before, tmp_path / "whole")
        whole = written(tmp_path / "whole" / "index", 0)
        assert whole["status"] == 0
        last = whole["calls"] - LAST  # the new index is there from one of the last calls on
        drawn = random.Random(20260105).sample(range(1, last), POINTS - LAST)
        for at in (*drawn, *range(last, whole["calls"])):
            folder = tmp_path / "killed"
            shutil.copytree(before, folder)
            assert written(folder / "index", at)["status"] == -signal.SIGKILL
            incidents = Counter()
            index = SETTINGS.build(DIM, incidents=incidents)
            index.load(folder / "index")
            assert all(tier.dirt is None for tier in index._lower.tiers)
            found_counts.add(len(index))
            repaired += incidents["index_tier_file"] > 0
            truth = oracles[len(index)].search(asked, len(index))
            hits = 0
            for (ids, scores, _), expected in zip(index.search_tiers(asked, 10), truth, strict=True):
                exact = dict(zip(*expected, strict=True))
                assert scores == [exact[document_id] for document_id in ids]
                hits += len(set(ids) & set(expected[0][:10]))
            assert hits >= RECALL * 10 * len(asked), f"killed at call {at} of {whole['calls']}"
            assert any(width < DIM for *_, width in index.search_tiers(asked, 10))
            incidents.clear()
            again = SETTINGS.build(DIM, incidents=incidents)
            again.load(folder / "index")
            assert not incidents
            shutil.rmtree(folder)
        writer.stdin.close()
    assert found_counts == {OLD, NEW}
    assert repaired
