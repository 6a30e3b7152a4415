"""The one way from text to words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.retrieval.text_index.words import load_stop_words, query_words, split_words, windows


@pytest.mark.parametrize(
    ("text", "words", "runs"),
    [
        ("Don't snake_case, GPT-4!", ["don", "t", "snake", "case", "gpt", "4"], []),
        ("Café CAFÉ cafe\u0301 ＣＡＦＥ", ["cafe"] * 4, []),
        ("Straße STRASSE İstanbul ﬁn", ["strasse", "strasse", "istanbul", "fin"], []),
        ("x² ½ ①", ["x2", "1", "2", "1"], []),
        ("Ελλάδα ελλαδα", ["ελλαδα"] * 2, []),
        ("हिन्दी שָׁלוֹם مُحَمَّد", ["हनद", "שלום", "محمد"], []),
        ("我们在学习。GPT很好！", ["gpt"], ["我们在学习", "很好"]),
        ("がんばる か\u3099 ｶﾞﾗｽ", [], ["がんばる", "が", "ガラス"]),
        ("한국어 ㈜", [], ["한국어", "주"]),
        ("𠀀𠀁 々〆ヶ", [], ["𠀀𠀁", "々〆ヶ"]),
        ("\0 \ud800 😀 -- ،", [], []),
        ("", [], []),
    ],
)
def test_a_text_is_split_into_folded_words_and_cjk_runs(text: str, words: list[str], runs: list[str]) -> None:
    assert split_words(text) == (words, runs)


@given(st.text())
def test_words_split_into_themselves(text: str) -> None:
    words, runs = split_words(text)
    again = split_words(" ".join([*words, *runs]))
    assert again == (words, runs)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_takes_the_short_way_to_the_same_words(text: str) -> None:
    words, runs = split_words(text)
    assert split_words(text + " é") == ([*words, "e"], runs)


def test_query_words_are_distinct_and_keep_stop_words_only_when_they_stand_alone() -> None:
    stop_words = load_stop_words("english")
    assert query_words(["what", "is", "tea", "what", "tea", "is"], stop_words, is_alone=True) == ["tea"]
    assert query_words(["what", "is", "what"], stop_words, is_alone=True) == ["what", "is"]
    assert query_words(["what", "is"], stop_words, is_alone=False) == []


def test_the_english_list_holds_function_words_and_no_others() -> None:
    stop_words = load_stop_words("english")
    assert {"what", "when", "why", "how", "did", "the", "of", "is", "you", "they", "and", "not"} <= stop_words
    assert not stop_words & {"may", "won", "march", "time", "day", "name", "home", "work", "like", "go", "know"}
    assert all(split_words(word) == ([word], []) for word in stop_words)
    assert load_stop_words("none") == frozenset()


def test_windows_overlap_and_a_short_run_is_its_own() -> None:
    assert [windows("我们在学", 3), windows("我们", 3)] == [["我们在", "们在学"], ["我们"]]
