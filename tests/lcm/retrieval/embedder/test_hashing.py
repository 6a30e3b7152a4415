"""Hashing keeps the laws of an embedder and puts related texts nearer than unrelated ones."""

import math
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.embedder.hashing import _WORD, Hashing, _features, _number
from tests.lcm.refusals import assert_refused

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


def test_a_text_without_words_gives_the_first_unit_vector_and_a_long_one_is_its_own_window() -> None:
    assert Hashing().windows(["a" * 10_000, ""]) == [["a" * 10_000], [""]]
    assert Hashing(dim=4).embed(["", "  ", "?!"], "document").tolist() == [[1.0, 0.0, 0.0, 0.0]] * 3


def test_shared_words_and_parts_of_words_bring_texts_nearer() -> None:
    for texts in (
        ("Alice adopted a cat", "the cat that Alice adopted", "Bob repaired his bicycle"),
        ("painting", "painted", "bicycle"),
        ("我昨天去了北京", "北京很大", "他喜欢猫"),
        ("ＡＬＩＣＥ", "alice", "bob"),
    ):
        row, near, far = Hashing().embed(texts, "document")
        assert row @ near > row @ far + 0.1


def test_name_changes_with_dim_and_seed_and_so_do_rows() -> None:
    one, other = Hashing(seed=0), Hashing(seed=1)
    assert len({one.name, other.name, Hashing(dim=16).name}) == 3
    assert one.embed(["cat"], "query").tobytes() != other.embed(["cat"], "query").tobytes()


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Hashing, "be >= 2", dim=1)
    with pytest.raises(ValueError, match=r"seed must be in .*, got -1"):
        Hashing(seed=-1)


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
