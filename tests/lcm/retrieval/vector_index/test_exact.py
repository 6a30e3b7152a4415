"""What is particular to the exact index; the laws are in the conformance suite."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lcm.retrieval.vector_index.exact import _ROUGH_FROM, Exact, cosines, to_grid


def unit(count: int, dim: int, seed: int) -> np.ndarray:
    vectors = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.parametrize("dim", [16, 768])
def test_the_grid_moves_a_cosine_less_than_float32_rounding_does(dim: int) -> None:
    rows, queries = unit(500, dim, 0), unit(50, dim, 1)
    truth = queries.astype(np.float64) @ rows.astype(np.float64).T
    ours = np.abs(cosines(to_grid(queries, dim), to_grid(rows, dim)) - truth).max()
    assert ours < np.abs(queries @ rows.T - truth).max()
    assert np.abs(cosines(to_grid(rows, dim), to_grid(rows, dim))).max() <= 1


@pytest.mark.parametrize(("windows", "share"), [(1, 1.0), (3, 0.7), (1, 0.3)])
def test_many_rows_are_ranked_in_two_steps_with_the_bits_of_one(windows: int, share: float) -> None:
    """Among rows of which many lie closer together than float32 can tell, with equal ones and ones longer than 1."""
    dim, documents, k = 24, _ROUGH_FROM, 40
    rows = unit(8, dim, 0)[np.random.default_rng(1).integers(0, 8, documents * windows)]
    rows = rows + 1e-7 * unit(documents * windows, dim, 2)
    rows[:200] *= np.float32(1.0008)
    ids = [f"d{i}" for i in np.random.default_rng(3).permutation(np.repeat(np.arange(documents), windows))]
    index = Exact().build(dim, incidents=Counter())
    index.add(ids, rows)
    hidden = {f"d{i}" for i in range(documents) if i % 10 >= 10 * share}
    allowed = None if share == 1 else tuple(i for i in dict.fromkeys(ids) if i not in hidden)
    queries = np.concatenate([unit(8, dim, 0), unit(5, dim, 4)])
    scores = np.full((len(queries), documents), -np.inf)
    names = list(dict.fromkeys(ids))
    places = {name: place for place, name in enumerate(names)}
    np.maximum.at(scores.T, [places[i] for i in ids], cosines(to_grid(queries, dim), to_grid(rows, dim)).T)
    scores[:, [places[i] for i in hidden]] = -np.inf
    for _ in range(2):  # the second time the filter is known
        for (found, values), row in zip(index.search(queries, k, allowed), scores, strict=True):
            best = np.argsort(-row, kind="stable")[:k]
            assert found == [names[place] for place in best]
            assert values == row[best].tolist()


@pytest.mark.parametrize("windows", [1, 2])
def test_an_index_that_grew_behind_its_file_is_the_one_that_grew_in_memory(windows: int, tmp_path: Path) -> None:
    count, dim = 2 * _ROUGH_FROM, 16
    ids = [f"d{i // windows}" for i in range(count)]
    vectors, queries = unit(count, dim, 0), unit(3, dim, 1)
    whole, saved, grown = (Exact().build(dim, incidents=Counter()) for _ in range(3))
    whole.add(ids, vectors)
    first = count - 901
    saved.add(ids[:first], vectors[:first])
    saved.save(tmp_path / "half")
    grown.load(tmp_path / "half")
    for start in range(first, count, 300):
        grown.add(ids[start : start + 300], vectors[start : start + 300])
    some = list(dict.fromkeys(ids[:40] + ids[-40:]))
    for removed in ([], some[::7]):
        for index in (whole, grown):
            index.remove(removed)
        left = [one for one in some if one not in removed]
        for allowed in (None, left, ids[: count // 3], ids[1:]):
            assert grown.search(queries, 7, allowed) == whole.search(queries, 7, allowed)
        assert np.array_equal(grown.vectors_of(left), whole.vectors_of(left))
        some_rows = whole.alive[[0, -1, 5, -9]]
        for query in to_grid(queries, dim):
            assert grown.rank(query, some_rows, 3) == whole.rank(query, some_rows, 3)
        for index, name in ((whole, "whole"), (grown, "grown")):
            index.save(tmp_path / name)
        assert (tmp_path / "grown").read_bytes() == (tmp_path / "whole").read_bytes()
