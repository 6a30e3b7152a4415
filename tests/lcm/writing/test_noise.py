"""What is noise; the vectors of the original are in tests/golden."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.noise import are_noise, is_noise

FACT = "Ada moved to the river in March"
DENIALS = (
    "I don't have any information", "i dont have memory of it", "I'M NOT SURE ABOUT that", "I don't recall",
    "I dont remember",
    "well, it looks like I don't", "I wasn't able to find it", "no relevant memories found", "no memories found",
    "I don't have access to it",
)  # fmt: skip
META_QUESTIONS = (
    "So, do you remember?", "can you recall that", "what did I say", "have I told you", "did I share it",
    "你还记得吗这个", "你记得那天的事", "记不记得那一天", "还记得那件事吗", "你知道我住哪吗", "我上次提的是什么呢",
    "只回复精确代号", "只回复  NONE", "如果你知道答案，只回复代号",
)  # fmt: skip
BOILERPLATE = (
    "Hello there",
    "hey you all",
    "Good Morning Ada",
    "GREETINGS",
    "fresh session",
    "new session",
    "heartbeat",
)
DIAGNOSTICS = ("query -> none", "query->not found", "user asked for a code, unknown", "a no explicit solution case")


def _only(group: str) -> dict[str, bool]:
    return {name: name == group for name in ("denials", "meta_questions", "boilerplate")}


@pytest.mark.parametrize(
    ("group", "text"),
    [
        (group, text)
        for group, texts in (("denials", DENIALS), ("meta_questions", META_QUESTIONS), ("boilerplate", BOILERPLATE))
        for text in texts
    ],
)
def test_each_group_is_noise_unless_switched_off(group: str, text: str) -> None:
    assert is_noise(text, **_only(group))
    assert is_noise(f"\ufeff {text}\t", **_only(group))
    assert not is_noise(text, **_only("none"))


@pytest.mark.parametrize("text", DIAGNOSTICS)
def test_diagnostics_are_always_noise(text: str) -> None:
    assert is_noise(text, **_only("none"))


@pytest.mark.parametrize(
    "text",
    [
        FACT,
        "you remember me",
        "no memory found",
        "undid I tell",  # no word of its own
        "query->unknownx",
        "Ada says hello",
        "HİSTORY of the river",
        "user asked for a code\nunknown",  # on another line
    ],
)
def test_what_only_looks_alike_is_kept(text: str) -> None:
    assert not is_noise(text)


def test_a_letter_beyond_ascii_is_no_part_of_a_word() -> None:
    assert is_noise("do you rememberé")


def test_a_greeting_needs_no_word_boundary() -> None:
    assert is_noise("history of the river")


@pytest.mark.parametrize(("text", "noise"), [("好" * 4, True), ("好" * 5, False), ("😀" * 2, True), ("😀😀好", False)])
def test_shorter_than_five_units_of_utf16_is_noise(text: str, noise: bool) -> None:
    assert is_noise(text) is noise
    assert is_noise(f"  {text}\u3000\n") is noise


@given(before=st.text(max_size=20), after=st.text(max_size=20), denial=st.sampled_from(DENIALS))
def test_a_denial_is_noise_wherever_it_stands_and_however_it_is_written(before: str, after: str, denial: str) -> None:
    assert is_noise(f"{before}{denial}{after}")
    assert is_noise(f"{before}{denial.upper()}{after}")


@given(text=st.text(), denials=st.booleans(), meta_questions=st.booleans(), boilerplate=st.booleans())
def test_switching_a_group_off_never_makes_noise(text: str, **groups: bool) -> None:
    assert is_noise(text) or not is_noise(text, **groups)


_CUED = st.builds(
    str.__add__, st.text(max_size=6), st.sampled_from([*DENIALS, *META_QUESTIONS, *BOILERPLATE, *DIAGNOSTICS, FACT])
)


@given(
    texts=st.lists(st.one_of(st.text(max_size=8), _CUED, _CUED.map(str.swapcase)), max_size=20),
    denials=st.booleans(),
    meta_questions=st.booleans(),
    boilerplate=st.booleans(),
)
def test_many_texts_are_judged_as_each_by_itself(texts: list[str], **groups: bool) -> None:
    many = texts + [FACT] * 100
    expected = [is_noise(text, **groups) for text in many]
    assert are_noise(pl.Series(many, dtype=pl.String), **groups).to_list() == expected
    assert are_noise(pl.Series(texts, dtype=pl.String), **groups).to_list() == expected[: len(texts)]
