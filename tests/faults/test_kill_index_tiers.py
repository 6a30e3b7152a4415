"""kill -9 at any call while index tiers are written: the old index is there or the new one, and it answers rightly."""

import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

from lcm.retrieval.vector_index.exact import Exact
from tests.faults.forking import warm
from tests.faults.tier_writer import DIM, NEW, OLD, SETTINGS, filled, unit

POINTS, LAST = 8, 4
RECALL = 0.95


@pytest.mark.slow
def test_a_killed_save_leaves_the_old_index_or_the_new_one(root: Path, tmp_path: Path) -> None:
    before, killed = tmp_path / "before", tmp_path / "killed"
    filled(OLD).save(before / "index")
    oracles = {count: Exact().build(DIM, incidents=Counter()) for count in (OLD, NEW)}
    for count, oracle in oracles.items():
        oracle.add([f"d{number}" for number in range(count)], unit(count, 0))
    asked = unit(20, 1)
    found_counts, repaired = set(), 0
    with warm(root, "tests.faults.tier_writer") as children:
        shutil.copytree(before, tmp_path / "whole")
        (whole,) = children({"path": str(tmp_path / "whole" / "index"), "at": 0})
        assert whole["status"] == 0
        calls = int(whole["said"][0])
        last = calls - LAST  # the new index is there from one of the last calls on
        for at in (*random.Random(20260105).sample(range(1, last), POINTS), *range(last, calls)):
            shutil.copytree(before, killed)
            (ended,) = children({"path": str(killed / "index"), "at": at})
            assert ended["status"] == -signal.SIGKILL
            incidents = Counter()
            index = SETTINGS.build(DIM, incidents=incidents)
            index.load(killed / "index")
            assert all(tier.dirt is None for tier in index._tiers)
            found_counts.add(len(index))
            repaired += incidents["index_tier_file"] > 0
            truth = oracles[len(index)].search(asked, len(index))
            hits = 0
            for (ids, scores, _), expected in zip(index.search_tiers(asked, 10), truth, strict=True):
                exact = dict(zip(*expected, strict=True))
                assert scores == [exact[document_id] for document_id in ids]
                hits += len(set(ids) & set(expected[0][:10]))
            assert hits >= RECALL * 10 * len(asked), f"killed at call {at} of {calls}"
            assert any(width < DIM for *_, width in index.search_tiers(asked, 10))
            incidents.clear()
            SETTINGS.build(DIM, incidents=incidents).load(killed / "index")
            assert not incidents
            shutil.rmtree(killed)
    assert found_counts == {OLD, NEW}
    assert repaired
