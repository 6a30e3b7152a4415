from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.sentences import sentences

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
