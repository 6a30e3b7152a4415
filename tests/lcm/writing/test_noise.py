"""What is noise; the vectors of the original are in tests/golden."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.noise import are_noise, is_noise

FACT = "Ada moved to the river in March"
DENIALS = ("I don't have any information", "i dont have memory of it", "well, it looks like I don't", "I dont remember")
NOISE = {
    "denials": DENIALS,
    "meta_questions": ("So, do you remember?", "have I told you", "你记得那天的事", "只回复  NONE"),
    "boilerplate": ("Hello there", "GREETINGS", "new session", "history of the river"),  # "hi" needs no boundary
    "complaints": (
        "So you can't recall it",
        "why do you keep forget",
        "did you get what I meant",
        "What just changed?",
    ),
    "diagnostics": ("query -> none", "user asked for a code, unknown", "a no explicit solution case"),
}


_CUED = st.builds(
    str.__add__, st.text(max_size=6), st.sampled_from([FACT, *(text for texts in NOISE.values() for text in texts)])
)


@given(
    texts=st.lists(st.one_of(st.text(max_size=8), _CUED, _CUED.map(str.swapcase)), max_size=20),
    denials=st.booleans(),
    meta_questions=st.booleans(),
    boilerplate=st.booleans(),
    complaints=st.booleans(),
)
def test_many_texts_are_judged_as_each_by_itself(texts: list[str], **groups: bool) -> None:
    many = texts + [FACT] * 100
    expected = [is_noise(text, **groups) for text in many]
    assert are_noise(pl.Series(many, dtype=pl.String), **groups).to_list() == expected
    assert are_noise(pl.Series(texts, dtype=pl.String), **groups).to_list() == expected[: len(texts)]
