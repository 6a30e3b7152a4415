"""Vectors that are kept: each text is made once while it is among those asked for last."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lcm.protocols.models import Vectors
from lcm.retrieval.ranking.evidence.kept_vectors import KeptVectors


def lengths(texts: list[str]) -> Vectors:
    return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def noting(made: list[list[str]]) -> Callable[[list[str]], Vectors]:
    def make(texts: list[str]) -> Vectors:
        made.append(texts)
        return lengths(texts)

    return make


def test_only_what_is_not_kept_is_made_and_each_text_has_its_row() -> None:
    made: list[list[str]] = []
    kept = KeptVectors(3)
    for embedder, texts in (
        ("a", ["x", "yy", "x"]),
        ("a", ["yy", "zzz"]),
        ("b", ["x"]),  # of another embedder
        ("a", ["vvvv", "yy"]),  # a fourth: x goes, which was asked for first
        ("a", ["vvvv", "yy", "zzz"]),
        ("a", ["x"]),
    ):
        assert kept.of(embedder, texts, noting(made))[:, 0].tolist() == [len(text) for text in texts]
    assert made == [["x", "yy"], ["zzz"], ["x"], ["vvvv"], ["x"]]


def test_what_several_threads_ask_at_once_is_right() -> None:
    kept = KeptVectors(40)
    words = ["x" * size for size in range(1, 61)]

    def ask(turn: int) -> bool:
        texts = words[turn % 50 : turn % 50 + 10]
        return kept.of("a", texts, lengths)[:, 0].tolist() == [len(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(400)))


def test_more_texts_at_once_than_are_kept_are_all_given() -> None:
    kept = KeptVectors(2)
    texts = ["a", "bb", "ccc", "dddd"]
    assert kept.of("a", texts, lengths)[:, 0].tolist() == [1, 2, 3, 4]
    assert kept.of("a", texts[::-1], lengths)[:, 0].tolist() == [4, 3, 2, 1]


def test_what_is_kept_goes_on_in_the_order_in_which_it_was_asked_for() -> None:
    made: list[list[str]] = []
    kept = KeptVectors(4)
    for text in ("a", "bb", "ccc", "dddd", "eeeee"):  # of a fifth three stay: the last three
        kept.of("x", [text], noting(made))
    for text in ("ffffff", "ggggggg"):  # and of a fifth again: the oldest of those go first
        kept.of("x", [text], noting(made))
    made.clear()
    kept.of("x", ["eeeee", "ffffff", "ggggggg"], noting(made))
    assert made == []
    kept.of("x", ["ccc"], noting(made))
    assert made == [["ccc"]]
