"""What is particular to index tiers; the laws are in the conformance suite."""

import logging
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Tiered
from lcm.retrieval.vector_index.exact import Exact
from lcm.retrieval.vector_index.hnsw_tiers import HnswTiers, HnswTiersIndex
from tests.lcm.refusals import assert_refused

DIM = 32
SETTINGS = HnswTiers(
    widths=(8, 16, None), exit_thresholds=(0.0, 0.0), tiers_from=0, flat_below=0, m=8, ef_construction=60, exact_below=0
)
TURNED = replace(SETTINGS, rotation="pca", rotation_from=50)
OWN_SCORES = replace(SETTINGS, exit_by="best_score", rescoring="none", exit_thresholds=(0.65, 0.75))


def unit(count: int, seed: int) -> Vectors:
    """Vectors whose spectrum falls, along axes that are not the given ones."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(np.random.default_rng(99).standard_normal((DIM, DIM)))[0]
    vectors = (rng.standard_normal((count, DIM)) * 0.8 ** np.arange(DIM)) @ axes
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def names(count: int) -> list[str]:
    return [f"d{number}" for number in range(count)]


def filled(settings: HnswTiers, count: int = 1000, incidents: Counter[str] | None = None) -> HnswTiersIndex:
    index = settings.build(DIM, incidents=Counter() if incidents is None else incidents)
    index.add(names(count), unit(count, 0))
    return index


def crowd() -> Vectors:
    """Forty vectors that are nearly one."""
    vectors = unit(1, 3) + 0.01 * unit(40, 4)
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def dirty_widths(index: HnswTiersIndex) -> list[int]:
    return [tier.width for tier in index._tiers if tier.dirt is not None]


def recall(index: HnswTiersIndex, count: int = 1000, queries: int = 100) -> float:
    oracle = Exact().build(DIM, incidents=Counter())
    oracle.add(names(count), unit(count, 0))
    asked = unit(queries, 1)
    pairs = zip(index.search(asked, 10), oracle.search(asked, 10), strict=True)
    return sum(len(set(found) & set(best)) for (found, _), (best, _) in pairs) / (10 * queries)


def test_settings_out_of_range_are_refused() -> None:
    build = partial(replace, SETTINGS)
    assert_refused(build, "be numbers and then null, the full width", widths=[[8, 16], []])
    assert_refused(build, "be >= 1 and ascend", widths=[[16, 8, None], [0, 8, None]])
    assert_refused(build, "be one a lower width, 2", exit_thresholds=[[0.5]])
    assert_refused(build, "be numbers", exit_thresholds=[[0.5, math.nan]])
    assert_refused(build, "be one of: best_score, margin", exit_by="luck")
    assert_refused(build, "be one of: none, pca", rotation="svd")
    assert_refused(build, "be >= 1", candidates=0, candidates_a_result=0, rotation_from=0, ef=0)
    assert_refused(build, "be in (0, 1]", candidates_share=0.0)
    assert_refused(build, "be > 1", rotation_growth=math.nan)
    assert_refused(build, "be >= 0", tiers_from=-1, flat_below=-1)
    with pytest.raises(ValueError, match="exit_by 'margin' compares with full-width cosines"):
        build(rescoring="none")


@pytest.mark.parametrize("allowed", [None, names(1000)[::2]])
@pytest.mark.parametrize(("flat_below", "exact_below"), [(0, 0), (0, 2000), (2000, 0)])
def test_an_answer_tells_its_width_and_whether_a_graph_found_it(flat_below, exact_below, allowed):
    index = filled(replace(SETTINGS, flat_below=flat_below, exact_below=exact_below, exit_thresholds=(0.05, 9.0)))
    asked = unit(60, 1)
    found = index.answers(asked, 10, allowed)
    assert isinstance(index, Tiered)
    assert index.widths == (8, 16, DIM)
    assert [(one.ids, one.cosines) for one in found] == index.search(asked, 10, allowed)
    assert [(one.ids, one.cosines, one.width) for one in found] == index.search_tiers(asked, 10, allowed)
    assert {one.width: one.is_by_graph for one in found} == {8: not flat_below, DIM: not exact_below}


def test_widths_that_the_vectors_do_not_exceed_are_left_out() -> None:
    assert replace(SETTINGS, widths=(8, DIM, None)).build(DIM, incidents=Counter()).widths == (8, DIM)


def test_few_visible_vectors_are_left_to_the_full_width() -> None:
    index = filled(replace(SETTINGS, tiers_from=900))
    asked = unit(30, 1)
    assert 8 in {width for *_, width in index.search_tiers(asked, 10)}
    assert {width for *_, width in index.search_tiers(asked, 10, names(899))} == {DIM}


def test_thresholds_decide_who_goes_on() -> None:
    for threshold, width in ((9.0, DIM), (-9.0, 8)):
        index = filled(replace(SETTINGS, exit_thresholds=(threshold, threshold)))
        assert {width for *_, width in index.search_tiers(unit(50, 1), 10)} == {width}


def test_a_learnt_rotation_finds_more_than_plain_truncation() -> None:
    narrow = {"widths": (8, None), "exit_thresholds": (-9.0,)}
    plain, turned = (recall(filled(replace(settings, **narrow))) for settings in (SETTINGS, TURNED))
    assert turned > 0.99
    assert turned > plain + 0.1


def test_a_rotation_is_learnt_when_there_are_vectors_enough_and_again_when_they_doubled() -> None:
    index = TURNED.build(DIM, incidents=Counter())
    learnt = []
    for start in range(0, 220, 20):
        index.add(names(220)[start : start + 20], unit(220, 0)[start : start + 20])
        rotation = index._tiers[0].rotation
        learnt.append(rotation and rotation.learnt_from)
    assert learnt == [None, None, 60, 60, 60, 120, 120, 120, 120, 120, 120]
    assert dirty_widths(index) == []


@pytest.mark.parametrize("rotation_from", [1, 50])
def test_a_rotation_is_learnt_again_with_late_vectors_of_ids_that_are_known(rotation_from: int) -> None:
    index = replace(TURNED, rotation_from=rotation_from).build(DIM, incidents=Counter())
    index.add(names(50), unit(50, 0))
    index.add(["d0", *names(120)[50:]], unit(71, 1))
    assert [tier.rotation and tier.rotation.learnt_from for tier in index._tiers] == [121, 121]
    assert [tier.count for tier in index._tiers] == [121, 121]
    assert dirty_widths(index) == []


def test_own_scores_are_those_of_the_width_that_answered() -> None:
    index = filled(OWN_SCORES)
    vectors, asked = unit(1000, 0).astype(np.float64), unit(60, 1).astype(np.float64)
    widths = set()
    for query, (ids, scores, width) in zip(asked, index.search_tiers(asked.astype(np.float32), 5), strict=True):
        rows = vectors[[int(i[1:]) for i in ids], :width]
        expected = rows @ query[:width] / np.linalg.norm(rows, axis=1) / np.linalg.norm(query[:width])
        assert scores == pytest.approx(expected.tolist(), abs=1e-6)
        assert width == DIM or scores[0] >= {8: 0.65, 16: 0.75}[width]
        widths.add(width)
    assert 8 in widths


def test_own_scores_count_the_best_of_several_vectors_and_respect_what_is_allowed() -> None:
    index = replace(OWN_SCORES, flat_below=10_000, exit_thresholds=(-1.0, -1.0)).build(DIM, incidents=Counter())
    index.add(["crowd"] * 40 + names(100), np.concatenate([crowd(), unit(100, 5)]))
    (answer,) = index.search(unit(1, 3), 5)
    assert len(set(answer[0])) == 5
    assert answer[0][0] == "crowd"
    assert index.search(unit(1, 3), 5, ["d3"])[0][0] == ["d3"]


@pytest.mark.parametrize("flat_below", [0, 10_000])
def test_own_scores_of_many_queries_are_those_of_each_alone(flat_below: int) -> None:
    index = replace(OWN_SCORES, flat_below=flat_below).build(DIM, incidents=Counter())
    index.add(["crowd"] * 40, crowd())
    index.add(names(900), unit(900, 5))
    asked = np.concatenate([unit(30, 1), unit(1, 3)])  # the last finds the crowd first: 5 rows, then 10, 20, 40, 80
    alone = [index.search_tiers(asked[i : i + 1], 5)[0] for i in range(len(asked))]
    assert index.search_tiers(asked, 5) == alone


def test_a_query_that_a_graph_cannot_answer_does_not_decide_for_the_others() -> None:
    index = filled(replace(SETTINGS, widths=(8, None), exit_thresholds=(-9.0,), candidates=10))
    asked = unit(20, 1)
    tier = index._tiers[0]
    refused, graph = tier.derive(asked[7:8]), tier.graph._graph
    asked_of_graph: list[int] = []

    class Failing:
        set_ef = graph.set_ef

        def knn_query(self, queries: Vectors, count: int, **named: Any) -> Any:
            if (queries == refused).all(axis=1).any():
                raise RuntimeError("Cannot return the results in a contiguous 2D array")
            asked_of_graph.append(len(queries))
            return graph.knn_query(queries, count, **named)

    tier.graph._graph = Failing()
    alone = [index.search_tiers(asked[i : i + 1], 2)[0] for i in range(len(asked))]
    asked_of_graph.clear()
    assert index.search_tiers(asked, 2) == alone
    assert sum(asked_of_graph) == 19


def test_a_graph_of_which_most_is_dead_begins_anew() -> None:
    index = filled(SETTINGS)
    tier = index._tiers[0]
    for gone, size, dead in ((names(500), 1000, 500), (["d999"], 499, 0)):
        index.remove(gone)
        index.search(unit(1, 1), 1)
        assert (tier.graph.size, tier.graph.size - tier.graph.alive) == (size, dead)
    anew = SETTINGS.build(DIM, incidents=Counter())
    anew.add(names(999)[500:], unit(1000, 0)[500:999])
    assert index.search_tiers(unit(30, 1), 10) == anew.search_tiers(unit(30, 1), 10)


class Failing:
    """hnswlib's index, out of memory."""

    def __init__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        def fail(*_: object, **__: object) -> None:
            raise RuntimeError("not enough memory")

        return fail


def test_a_failed_insert_leaves_a_dirty_tier_that_the_next_add_derives(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, exact_below=10_000)
    incidents = Counter[str]()
    index = filled(settings, 900, incidents)
    with monkeypatch.context() as broken:
        for tier in index._tiers:
            broken.setattr(tier.graph, "_graph", Failing())
        index.add(names(1000)[900:], unit(1000, 0)[900:])
    assert dirty_widths(index) == [8, 16]
    assert incidents == {"index_tier_insert": 2}
    assert "width 8 could not follow (not enough memory)" in caplog.text
    assert {width for *_, width in index.search_tiers(unit(30, 1), 10)} == {DIM}
    assert recall(index) == 1
    index.save(tmp_path / "index")
    caplog.clear()
    loaded = settings.build(DIM, incidents=Counter())
    loaded.load(tmp_path / "index")
    assert "was left dirty (not enough memory): derived from the full width" in caplog.text
    index.add(["more"], unit(1, 7))
    for mended in (index, loaded):
        assert dirty_widths(mended) == []
        assert 8 in {width for *_, width in mended.search_tiers(unit(30, 1), 10)}


def test_a_lower_width_that_cannot_search_counts_as_empty(caplog: pytest.LogCaptureFixture) -> None:
    incidents = Counter[str]()
    index = filled(replace(SETTINGS, exact_below=10_000), incidents=incidents)
    for tier in index._tiers:
        tier._rows = None
        tier.graph._graph = Failing()
        tier.nearest = Failing().nearest
    assert recall(index) == 1
    assert incidents == {"index_tier_search": 2}
    assert "did not answer (not enough memory): its queries go on" in caplog.text


@pytest.mark.parametrize(
    ("settings", "damage"),
    [
        *((TURNED, damage) for damage in ("delete", "cut", "flip", "empty", "other content", "other settings")),
        *((settings, "cut") for settings in (SETTINGS, OWN_SCORES)),
    ],
)
def test_a_lost_tier_is_derived_on_load_and_written_again(settings, damage, tmp_path, caplog):
    path, tier = tmp_path / "index", tmp_path / "index.16"
    index = filled(settings, 500)
    index.save(path)
    whole = tier.read_bytes()
    if damage == "delete":
        tier.unlink()
    elif damage in ("cut", "flip", "empty"):
        flipped = whole[:500] + bytes([whole[500] ^ 1]) + whole[501:]
        tier.write_bytes({"cut": whole[:-7], "flip": flipped, "empty": b""}[damage])
    else:
        is_content = damage == "other content"
        other = filled(settings, 400) if is_content else filled(replace(settings, ef_construction=50), 500)
        other.save(tmp_path / "other")
        tier.write_bytes((tmp_path / "other.16").read_bytes())
    incidents = Counter[str]()
    loaded = settings.build(DIM, incidents=incidents)
    loaded.load(path)
    assert "derived from the full width" in caplog.text
    assert incidents == {"index_tier_file": 1}
    assert dirty_widths(loaded) == []
    assert loaded.search_tiers(unit(40, 1), 10) == index.search_tiers(unit(40, 1), 10)
    caplog.clear()
    settings.build(DIM, incidents=Counter()).load(path)
    assert not caplog.records


def test_a_small_set_waits_for_its_rotation_without_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    index = filled(TURNED, 40)
    index.save(tmp_path / "index")
    assert [file.name for file in tmp_path.iterdir()] == ["index"]
    loaded = TURNED.build(DIM, incidents=Counter())
    with caplog.at_level(logging.WARNING):
        loaded.load(tmp_path / "index")
    assert not caplog.records
    loaded.add([f"more{i}" for i in range(960)], unit(1000, 0)[40:])
    assert 8 in {width for *_, width in loaded.search_tiers(unit(40, 1), 10)}
