"""The laws of `VectorIndex`, over every YAML of its group."""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hydra.utils import instantiate
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from lcm.errors import StoreError
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import VectorIndex, VectorIndexChoice
from lcm.retrieval.vector_index.exact import Exact

DIM = 16
CONF = Path(__file__).parents[2] / "conf" / "vector_index"
CHOICES: dict[str, VectorIndexChoice] = {
    path.stem: instantiate(OmegaConf.load(path), _convert_="all") for path in sorted(CONF.glob("*.yaml"))
}
# Small sets are searched exactly by default: the laws must hold where the graph answers, too. `ef` is what a list of
# changes can add: where fewer are looked at, which of many equal vectors are found is the graph's affair.
CHOICES["hnsw_graph"] = dataclasses.replace(CHOICES["hnsw"], ef=240, exact_below=0)
# Likewise where narrow vectors answer. `libravdb` is here with its full width alone: that its lower ones answer with
# cosines of their own is what it is for.
TIERS = {
    "widths": (4, 12, None),
    "exit_thresholds": (0.1, 0.1),
    "candidates": 60,
    "ef": 240,
    "tiers_from": 0,
    "flat_below": 1000,
    "exact_below": 0,
}
CHOICES["hnsw_tiers_alive"] = dataclasses.replace(CHOICES["hnsw_tiers"], **TIERS)
CHOICES["hnsw_tiers_pca_alive"] = dataclasses.replace(CHOICES["hnsw_tiers_pca"], **TIERS, rotation_from=100)


ONE_OF_EACH_CLASS = ("exact", "hnsw_graph", "hnsw_tiers_pca_alive")
NAMES = [pytest.param(name, marks=[] if name in ONE_OF_EACH_CLASS else pytest.mark.full) for name in CHOICES]


@pytest.fixture(params=NAMES)
def choice(request: pytest.FixtureRequest) -> VectorIndexChoice:
    return CHOICES[request.param]


def unit(rng: np.random.Generator, count: int, dim: int = DIM) -> Vectors:
    vectors = rng.standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def names(count: int, prefix: str = "d") -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def filled(choice: VectorIndexChoice, count: int, seed: int = 0) -> tuple[VectorIndex, list[str], Vectors]:
    index = choice.build(DIM, incidents=Counter())
    ids, vectors = names(count), unit(np.random.default_rng(seed), count)
    index.add(ids, vectors)
    return index, ids, vectors


def direction(angle: float) -> Vectors:
    vector = np.zeros((1, DIM), np.float32)
    vector[0, :2] = np.cos(angle), np.sin(angle)
    return vector


@pytest.mark.parametrize(("count", "k"), [(1, 1), (37, 5), (700, 10), (700, 300), (2000, 20)])
def test_answers_are_those_of_looking_at_every_vector(choice: VectorIndexChoice, count: int, k: int) -> None:
    index, ids, vectors = filled(choice, count)
    queries = unit(np.random.default_rng(1), 40)
    truth = queries.astype(np.float64) @ vectors.astype(np.float64).T
    places = {document_id: place for place, document_id in enumerate(ids)}
    found = 0
    for (answer, cosines), row in zip(index.search(queries, k), truth, strict=True):
        assert len(answer) == len(set(answer)) == min(k, count)
        assert cosines == sorted(cosines, reverse=True)
        assert cosines == pytest.approx([row[places[document_id]] for document_id in answer], abs=5e-7)
        found += len({places[document_id] for document_id in answer} & set(np.argsort(-row)[:k].tolist()))
    assert found >= 0.95 * 40 * min(k, count)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 37, 699, 2000])
def test_scores_are_the_exact_ones_bit_for_bit(choice: VectorIndexChoice, count: int) -> None:
    index, ids, vectors = filled(choice, count)
    oracle = Exact().build(DIM, incidents=Counter())
    oracle.add(ids, vectors)
    queries = unit(np.random.default_rng(1), 10)
    for (answer, cosines), expected in zip(index.search(queries, 10), oracle.search(queries, count), strict=True):
        exact = dict(zip(*expected, strict=True))
        assert cosines == [exact[document_id] for document_id in answer]


def test_ties_come_in_the_order_of_adding(choice: VectorIndexChoice) -> None:
    index = choice.build(DIM, incidents=Counter())
    base = unit(np.random.default_rng(0), 250)
    for copy in ("c", "a", "b"):
        index.add(names(250, copy), base)
    for number, (answer, cosines) in enumerate(index.search(base[:20], 3)):
        assert answer == [f"c{number}", f"a{number}", f"b{number}"]
        assert len(set(cosines)) == 1


def test_many_vectors_of_one_id_do_not_crowd_out_the_others(choice: VectorIndexChoice) -> None:
    index, _, _ = filled(choice, 1000)
    query = unit(np.random.default_rng(3), 1)
    crowd = query + 0.01 * unit(np.random.default_rng(4), 500)
    index.add(["crowd"] * 500, (crowd / np.linalg.norm(crowd, axis=1, keepdims=True)).astype(np.float32))
    answer, _ = index.search(query, 20)[0]
    assert answer[0] == "crowd"
    assert len(set(answer)) == 20


@pytest.mark.parametrize("share", [1, 2, 10, 1000])
def test_only_allowed_ids_come_back(choice: VectorIndexChoice, share: int) -> None:
    index, ids, _ = filled(choice, 2000)
    allowed = ids[::share]
    for answer, _ in index.search(unit(np.random.default_rng(1), 20), 15, [*allowed, "unknown", *allowed[:3]]):
        assert len(answer) == len(set(answer)) == min(15, len(allowed))
        assert set(answer) <= set(allowed)


def test_k_may_exceed_the_size_or_be_zero(choice: VectorIndexChoice) -> None:
    index, ids, vectors = filled(choice, 900)
    (answer, _), *_ = index.search(vectors[:1], 10_000)
    assert sorted(answer) == sorted(ids)
    assert index.search(vectors[:2], 0) == [([], []), ([], [])]
    with pytest.raises(ValueError, match="k must be >= 0, got -1"):
        index.search(vectors[:1], -1)


def test_an_empty_index_and_an_empty_batch_give_nothing(choice: VectorIndexChoice) -> None:
    index = choice.build(DIM, incidents=Counter())
    assert len(index) == 0
    assert index.search(direction(0), 3) == [([], [])]
    index.add([], np.empty((0, DIM), np.float32))
    assert index.search(direction(0), 3, ["a"]) == [([], [])]
    index, _, _ = filled(choice, 900)
    assert index.search(np.empty((0, DIM), np.float32), 3) == []


def test_everything_can_be_removed_and_added_again(choice: VectorIndexChoice) -> None:
    index, ids, vectors = filled(choice, 900)
    before = index.search(vectors[:9], 10)
    for _ in range(2):
        index.remove(ids)
        assert len(index) == 0
        assert index.search(vectors[:1], 5) == [([], [])]
        index.add(ids, vectors)
    assert index.search(vectors[:9], 10) == before


def test_removing_an_unknown_id_names_it_and_removes_nothing(choice: VectorIndexChoice) -> None:
    index, ids, _ = filled(choice, 5)
    with pytest.raises(ValueError, match="cannot remove what is not in the index: 'x', 'y'"):
        index.remove([ids[0], "y", "x"])
    assert len(index) == 5
    index.remove(ids[:1])
    with pytest.raises(ValueError, match="'d0'"):
        index.remove(ids[:1])


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        (["a"], np.zeros((2, DIM)), "as many vectors as ids, got 2 vectors and 1 ids"),
        (["a"], np.ones((1, DIM)), "unit length, got length 4.0 in row 0"),
        (["a"], np.full((1, DIM), np.nan), "unit length, got length nan"),
        (["a"], np.zeros((1, DIM + 1)), r"shape \(n, 16\), got \(1, 17\)"),
    ],
)
def test_unfit_vectors_are_refused(choice: VectorIndexChoice, ids: list[str], vectors: Vectors, message: str) -> None:
    index = choice.build(DIM, incidents=Counter())
    with pytest.raises(ValueError, match=message):
        index.add(ids, vectors.astype(np.float32))
    assert len(index) == 0


def test_a_zero_vector_is_neither_near_nor_far(choice: VectorIndexChoice) -> None:
    index = choice.build(DIM, incidents=Counter())
    index.add(["behind", "nowhere", "here"], np.vstack([-direction(0), np.zeros((1, DIM), np.float32), direction(0)]))
    assert index.search(direction(0), 3)[0] == (["here", "nowhere", "behind"], [1.0, 0.0, -1.0])


def test_dim_must_be_positive(choice: VectorIndexChoice) -> None:
    with pytest.raises(ValueError, match="dim must be >= 1, got 0"):
        choice.build(0, incidents=Counter())


@pytest.mark.parametrize("count", [0, 4, 1100])
def test_a_loaded_index_answers_and_grows_like_the_saved_one(
    choice: VectorIndexChoice, count: int, tmp_path: Path
) -> None:
    saved, ids, vectors = filled(choice, count)
    saved.add(ids[:3], vectors[:3][::-1])
    saved.remove(ids[3:100])
    saved.save(tmp_path / "index")
    loaded, _, _ = filled(choice, 7, seed=5)
    loaded.load(tmp_path / "index")
    queries = unit(np.random.default_rng(1), 20)
    assert len(loaded) == len(saved)
    assert loaded.search(queries, 9) == saved.search(queries, 9)
    more = unit(np.random.default_rng(2), 1500)
    for index in (saved, loaded):
        index.add(names(1500, "more"), more)
        index.remove(["more3"])
    everything = len(saved)
    assert loaded.search(queries, everything) == saved.search(queries, everything)
    assert {path.name for path in tmp_path.iterdir()} - {"index.4", "index.12"} == {"index"}  # of two widths


def test_a_torn_changed_or_missing_file_is_refused(choice: VectorIndexChoice, tmp_path: Path) -> None:
    saved, _, vectors = filled(choice, 850)
    path = tmp_path / "index"
    saved.save(path)
    whole = path.read_bytes()
    index, _, _ = filled(choice, 3)
    before = index.search(vectors[:2], 3)
    rng = np.random.default_rng(0)
    lengths = {0, 1, 11, 12, 13, 43, 44, 45, 52, 60, len(whole) - 1, *rng.integers(0, len(whole), 20).tolist()}
    damaged = [whole[:length] for length in sorted(lengths)]
    for place in [0, 12, 44, 51, 52, len(whole) - 1, *rng.integers(0, len(whole), 40).tolist()]:
        damaged.append(whole[:place] + bytes([whole[place] ^ 1 << int(rng.integers(8))]) + whole[place + 1 :])
    for data in [*damaged, whole + b"\0", b"not an index"]:
        path.write_bytes(data)
        with pytest.raises(StoreError, match="rebuild it"):
            index.load(path)
    with pytest.raises(StoreError, match="cannot read"):
        index.load(tmp_path / "absent")
    assert index.search(vectors[:2], 3) == before


def test_a_file_of_other_settings_is_refused(tmp_path: Path) -> None:
    for name, choice in CHOICES.items():
        index = choice.build(DIM, incidents=Counter())
        index.add(["a"], direction(0))
        index.save(tmp_path / name)
        with pytest.raises(StoreError, match="was written with"):
            choice.build(DIM * 2, incidents=Counter()).load(tmp_path / name)
    with pytest.raises(StoreError, match="was written with"):
        CHOICES["hnsw"].build(DIM, incidents=Counter()).load(tmp_path / "exact")


DIRECTIONS = 12
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(st.integers(0, 30), st.integers(0, DIRECTIONS - 1)), max_size=20)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 30), max_size=10)),
    ),
    max_size=12,
)


@pytest.mark.parametrize("name", NAMES)
@given(CHANGES, st.integers(0, 40), st.none() | st.lists(st.integers(0, 40)), st.integers(0, DIRECTIONS - 1))
def test_any_changes_leave_what_a_fresh_list_would_hold(
    name: str, changes: list[tuple[str, list]], k: int, allowed: list[int] | None, query: int
) -> None:
    vectors = np.vstack([direction(number / DIRECTIONS * 2 * np.pi) for number in range(DIRECTIONS)])
    index = CHOICES[name].build(DIM, incidents=Counter())
    kept: dict[str, list[int]] = {}  # in the order of adding
    for change, arguments in changes:
        if change == "add":
            index.add([f"d{i}" for i, _ in arguments], vectors[[place for _, place in arguments]])
            for i, place in arguments:
                kept.setdefault(f"d{i}", []).append(place)
        else:
            present = [f"d{i}" for i in arguments if f"d{i}" in kept]
            index.remove(present)
            for document_id in present:
                kept.pop(document_id, None)
    visible: Sequence[str] | None = None if allowed is None else [f"d{i}" for i in allowed]
    cosines = exact_cosines(vectors, query)
    best = {
        document_id: max(cosines[place] for place in places)
        for document_id, places in kept.items()
        if visible is None or document_id in visible
    }
    expected = sorted(best.items(), key=lambda pair: -pair[1])[:k]
    assert index.search(vectors[query : query + 1], k, visible) == [
        ([i for i, _ in expected], [c for _, c in expected])
    ]
    assert len(index) == len(kept)


def exact_cosines(vectors: Vectors, query: int) -> list[float]:
    """Each direction alone in an index: its cosine to the query, to the bit."""
    cosines = []
    for place in range(len(vectors)):
        index = Exact().build(DIM, incidents=Counter())
        index.add(["only"], vectors[place : place + 1])
        cosines.append(index.search(vectors[query : query + 1], 1)[0][1][0])
    return cosines


def test_the_vector_of_an_id_is_the_normalised_mean_of_its_own(choice: VectorIndexChoice) -> None:
    index, ids, vectors = filled(choice, 60)
    more = unit(np.random.default_rng(2), 10)
    index.add(ids[:10], more)
    index.remove(ids[20:30])
    index.add(["late"], vectors[25:26])
    means = np.concatenate([vectors[:10] + more, vectors[10:20], vectors[30:], vectors[25:26]]).astype(np.float64)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    kept = [*ids[:20], *ids[30:], "late"]
    order = np.random.default_rng(3).permutation(len(kept))
    found = index.vectors_of([kept[place] for place in order])
    assert found.dtype == np.float32
    assert np.allclose(found, means[order], atol=1e-6)
    assert index.vectors_of([]).shape == (0, DIM)
    with pytest.raises(ValueError, match="d25"):
        index.vectors_of(["late", "d25"])
