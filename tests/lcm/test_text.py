"""The one way from text to words, stems and sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.text import load_stop_words, query_words, sentences, split_words, stem, stems, windows, words_in


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


def test_the_rules_of_originals_cut_otherwise() -> None:
    text = "A snake_case, über 東京都 x２"
    assert words_in(text) == ["a", "snake", "case", "uber", "x2", "東京", "京都"]
    assert words_in(text, "ascii") == ["a", "snake_case", "ber", "x"]
    assert words_in(text, "han") == ["a", "snake", "case", "über", "東", "京", "都", "x２"]
    assert words_in("what a kettle", without=load_stop_words("english")) == ["kettle"]


def test_a_stem_is_of_the_script_and_none_of_a_language_that_is_none() -> None:
    assert [stem("running"), stem("бежали")] == ["run", "бежа"]
    assert [stems(["runs", "moss"], one) for one in ("english", "none")] == [["run", "moss"], ["runs", "moss"]]


PIECES = [
    *("Dr.", "e.g.", "3.14", "a.py", "yes", "No", "。", "！", "你好", ".", "!", "?", "...", "」", "1."),
    *('"', " ", "\n", "\r\n"),
]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_the_pieces_joined_are_the_text_and_none_is_blank(text: str) -> None:
    pieces = sentences(text)
    assert "".join(pieces) == text
    assert bool(pieces) == bool(text)
    assert not text.strip() or all(piece.strip() for piece in pieces)


CUT = [
    ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
    ("first line\nsecond", ["first line\n", "second"]),
    ("a line\r\n\n  indented", ["a line\r\n\n", "  indented"]),
    ("\n\n First.\n", ["\n\n First.\n"]),
    ("你好。我是谁？“走吧！”他说", ["你好。", "我是谁？", "“走吧！”", "他说"]),
    ("再见!好的", ["再见!", "好的"]),
    ('He said "Stop." Then he left.', ['He said "Stop." ', "Then he left."]),
    ("So do I. You too.", ["So do I. ", "You too."]),
    ("It is 5 p.m. They leave.", ["It is 5 p.m. ", "They leave."]),
    ("Released in 2019. Then sold.", ["Released in 2019. ", "Then sold."]),
    ("ok. let me look", ["ok. ", "let me look"]),
    ("A tokenised one . Next ?", ["A tokenised one . ", "Next ?"]),
]
WHOLE = [
    "It costs 3.14 or 1.000,50 now",
    "See https://a.example/b.html?c=d.e!f for more",
    "Open src/lcm/a.py and ../b.test.ts then",
    "Use a tool, e.g. Git, i.e. a version control, etc. and so on",
    "Ask Dr. Who and J. Smith of Acme Inc. about it",
    "In Fig. 3, No. 7 of vol. 2",
    "1. Install it",
    "It was, well... odd",
    "價格３．１４元",
    '"What?" he asked',
]


def test_sentences_end_at_lines_and_marks_of_any_script_and_not_within_numbers_files_and_abbreviations() -> None:
    assert [sentences(text) for text, _ in CUT] == [expected for _, expected in CUT]
    assert [sentences(text) for text in WHOLE] == [[text] for text in WHOLE]
