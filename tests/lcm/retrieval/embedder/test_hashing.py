"""Hashing keeps the laws of an embedder and puts related texts nearer than unrelated ones."""

import math
import os
import subprocess
import sys
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.embedder.hashing import _WORD, Hashing, _features, _number

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


@given(st.lists(ANY_TEXT, max_size=6), st.randoms(use_true_random=False))
def test_rows_have_unit_length_and_depend_on_their_text_only(texts: list[str], random: object) -> None:
    embedder = Hashing(dim=64)
    rows = embedder.embed(texts, "document")
    assert rows.shape == (len(texts), 64)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), np.ones(len(texts)), atol=1e-6)
    order = list(range(len(texts)))
    random.shuffle(order)
    shuffled = embedder.embed([texts[i] for i in order], "query")
    assert shuffled.tobytes() == rows[order].tobytes()


def test_rows_are_the_same_in_another_process() -> None:
    code = (
        "from lcm.retrieval.embedder.hashing import Hashing; "
        "print(Hashing().embed(['I moved to Lisbon', '引っ越した'], 'query').tobytes().hex())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == Hashing().embed(["I moved to Lisbon", "引っ越した"], "query").tobytes().hex()


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_a_text_without_words_gives_the_first_unit_vector(text: str) -> None:
    assert Hashing(dim=4).embed([text], "document").tolist() == [[1.0, 0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Alice adopted a cat", "the cat that Alice adopted", "Bob repaired his bicycle"),
        ("painting", "painted", "bicycle"),
        ("我昨天去了北京", "北京很大", "他喜欢猫"),
        ("ＡＬＩＣＥ", "alice", "bob"),
    ],
)
def test_shared_words_and_parts_of_words_bring_texts_nearer(text: str, near: str, far: str) -> None:
    row, near_row, far_row = Hashing().embed([text, near, far], "document")
    assert row @ near_row > row @ far_row + 0.1


def test_name_changes_with_dim_and_seed_and_so_do_rows() -> None:
    one, other = Hashing(seed=0), Hashing(seed=1)
    assert len({one.name, other.name, Hashing(dim=16).name}) == 3
    assert one.embed(["cat"], "query").tobytes() != other.embed(["cat"], "query").tobytes()


def test_a_text_is_its_own_only_window() -> None:
    assert Hashing().windows(["a" * 10_000, ""]) == [["a" * 10_000], [""]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"dim": 1}, "dim must be >= 2, got 1"), ({"seed": -1}, "seed must be in .*, got -1")],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hashing(**settings)


@given(st.lists(ANY_TEXT, max_size=4), st.sampled_from([2, 64]), st.integers(0, 2))
def test_rows_are_the_sums_that_the_formula_says(texts: list[str], dim: int, seed: int) -> None:
    rows = np.zeros((len(texts), dim))
    for row, text in zip(rows, texts, strict=True):
        runs = [_features(run) for run in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())]
        for i, (kind, weight) in enumerate((("word", 1.0), ("ngram", 0.5))):
            counts = Counter(_number(kind, name, seed) for of_run in runs for name in of_run[i])
            for number, count in counts.items():
                row[(number >> 1) % dim] += (1 if number & 1 else -1) * (weight * math.sqrt(count))
        length = math.sqrt(np.square(row).sum())
        row[:] = row / length if length else np.eye(dim)[0]
    assert Hashing(dim, seed).embed(texts, "document").tobytes() == rows.astype(np.float32).tobytes()
