"""Words add up to a row: equal words, in whatever order, are all that it knows."""

from hashlib import sha256

import numpy as np
import pytest

from lcm.retrieval.embedder.hashing import TokenSum
from tests.lcm.refusals import assert_refused


def values(word: str) -> np.ndarray:
    return np.array([byte / 127.5 - 1 for byte in sha256(word.encode()).digest()])


def row(text: str, dim: int = 32) -> np.ndarray:
    return TokenSum(dim).embed([text], "document")[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kettle THE", ["the", "kettle"]),
        ("\u0130", ["i"]),  # lowered letter by letter: neither two letters
        ("\u03a3\u03a3", ["\u03c3\u03c3"]),  # nor a final sigma
        ("A\x1cB", ["a\x1cb"]),  # separators of files part no words
        ("", [""]),
    ],
)
def test_a_row_is_the_sum_of_the_digests_of_its_words(text: str, words: list[str]) -> None:
    summed = np.sum([values(word) for word in words], axis=0)
    assert row(text) == pytest.approx(summed / np.linalg.norm(summed), abs=1e-6)


def test_words_that_cancel_out_give_the_first_unit_vector() -> None:
    first = {sha256(f"w{i}".encode()).digest()[0]: f"w{i}" for i in range(2000)}
    byte = next(byte for byte in first if 255 - byte in first)
    assert row(f"{first[byte]} {first[255 - byte]}", 1).tolist() == [1.0]


def test_the_name_says_the_width_and_a_width_below_one_is_refused() -> None:
    assert TokenSum(8).name != TokenSum(9).name
    assert_refused(TokenSum, "be >= 1", dim=0)
