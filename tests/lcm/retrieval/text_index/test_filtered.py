"""What is particular to the index with LanceDB's words; the laws are in the conformance suite.

Scores were measured on LanceDB itself: lancedb 0.29.2 for Python (the engine of @lancedb/lancedb 0.26), a table with
these texts, `create_fts_index("text", use_tantivy=False)` without options, five decimals.
"""

import pytest

from lcm.retrieval.text_index import Filtered
from tests.lcm.refusals import assert_refused

TEXTS = [
    "the cat sat on the mat",
    "when did the dog bark",
    "dog dog dog cat",
    "The Dog's café is nice",
    "when when they were in",
    "bees being noted",
    "ins and outs",
    "don't go there now",
    *(f"filler words number {number} moss fern" for number in range(20)),
]
MEASURED = {
    "the": {},
    "when": {"4": 3.82239, "1": 2.70263},
    "dog": {"2": 3.4932, "1": 2.33161, "3": 2.33161},
    "dog dogs": {"2": 3.4932, "1": 2.33161, "3": 2.33161},  # a stem counts once
    "dog's": {"3": 5.59751, "2": 3.4932, "1": 2.33161},
    "cafe": {"3": 3.2659},
    "CAFÉ": {"3": 3.2659},
    "bee": {"5": 3.95489},
    "ins": {},  # whose stem is a stop word
    "being": {},
    "don't": {"7": 6.53179},
    "were": {"4": 3.57752},
    "there": {},
    "cat cat dog": {"2": 6.19582, "0": 2.96051, "1": 2.33161, "3": 2.33161},
}


def test_scores_are_those_of_lancedb() -> None:
    index = Filtered().build()
    index.add([str(number) for number in range(len(TEXTS))], TEXTS)
    found = [dict(zip(ids, scores, strict=True)) for ids, scores in index.search(list(MEASURED), 20)]
    assert [list(answer) for answer in found] == [list(answer) for answer in MEASURED.values()]
    for answer, measured in zip(found, MEASURED.values(), strict=True):
        assert answer == pytest.approx(measured, abs=1e-5)


def test_a_word_of_as_many_bytes_as_the_limit_is_no_part_of_a_document() -> None:
    for word, expected in (("a" * 39, ["x"]), ("a" * 40, []), ("ä" * 20, ["x"]), ("ж" * 20, [])):
        index = Filtered(stemmer="none").build()
        index.add(["x"], [word])
        assert index.search([word], 1)[0][0] == expected  # ä is folded to a single byte


def test_stop_words_do_not_make_a_document_long() -> None:
    index = Filtered().build()
    index.add(["short", "padded"], ["kettle", "the kettle is in there"])
    _, (one, other) = index.search(["kettle"], 2)[0]
    assert one == other


def test_settings_out_of_range_are_refused() -> None:
    assert_refused(Filtered, "be >= 0", k1=-1)
    assert_refused(Filtered, "be in [0, 1]", b=2)
    assert_refused(Filtered, "be >= 2", max_token_length=1)
    with pytest.raises(ValueError, match=r"stemmer must be one of: .*english.*none.*, got 'klingon'"):
        Filtered(stemmer="klingon")
