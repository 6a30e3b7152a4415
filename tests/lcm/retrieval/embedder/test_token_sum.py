"""Words add up to a row: equal words, in whatever order, are all that it knows."""

from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.embedder.token_sum import TokenSum

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


def values(word: str) -> np.ndarray:
    return np.array([byte / 127.5 - 1 for byte in sha256(word.encode()).digest()])


def row(text: str, dim: int = 32) -> np.ndarray:
    return TokenSum(dim).embed([text], "document")[0]


def test_a_row_is_the_sum_of_the_digests_of_its_words() -> None:
    summed = values("the") + values("kettle")
    assert row(" The\u00a0kettle\n") == pytest.approx(summed / np.linalg.norm(summed), abs=1e-6)


def test_beyond_32_places_the_bytes_come_again() -> None:
    repeated = np.resize(values("kettle"), 40)
    assert row("kettle", 40) == pytest.approx(repeated / np.linalg.norm(repeated), abs=1e-6)


@given(st.lists(ANY_TEXT, max_size=6))
def test_rows_have_unit_length_and_depend_on_their_text_only(texts: list[str]) -> None:
    rows = TokenSum().embed(texts, "query")
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(len(texts)), abs=1e-6)
    assert all(row(text, 384).tobytes() == one.tobytes() for text, one in zip(texts, rows, strict=True))


def test_the_order_of_words_and_their_case_say_nothing() -> None:
    assert row("Goats eat grass") == pytest.approx(row("grass eat goats"), abs=1e-7)


def test_a_word_is_lowered_letter_by_letter() -> None:
    for text, lowered in (("\u0130", "i"), ("\u03a3\u03a3", "\u03c3\u03c3")):  # neither two letters nor a final sigma
        assert row(text) == pytest.approx(values(lowered) / np.linalg.norm(values(lowered)), abs=1e-6)


def test_separators_of_files_part_no_words() -> None:
    assert row("a\x1cb") == pytest.approx(row("A\x1cB"))
    assert row("a\x1cb") != pytest.approx(row("a b"))


def test_a_text_without_words_is_its_own_word() -> None:
    for text in ("", "   "):
        assert row(text) == pytest.approx(values(text) / np.linalg.norm(values(text)), abs=1e-6)


def test_words_that_cancel_out_give_the_first_unit_vector() -> None:
    first = {sha256(f"w{i}".encode()).digest()[0]: f"w{i}" for i in range(2000)}
    byte = next(byte for byte in first if 255 - byte in first)
    assert row(f"{first[byte]} {first[255 - byte]}", 1).tolist() == [1.0]


def test_the_name_says_the_width_and_a_width_below_one_is_refused() -> None:
    assert TokenSum(8).name != TokenSum(9).name
    with pytest.raises(ValueError, match=r"^dim must be >= 1, got 0$"):
        TokenSum(0)
