"""Candidates rated by rule."""

from datetime import UTC, datetime, timedelta

import pytest

from lcm.records.document import Candidate
from lcm.writing.annotation.none import NoAnnotation
from lcm.writing.annotation.rules import Rules, categories_of

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


def category_of(text: str) -> str | None:
    (category,) = categories_of([text])
    return category


def candidate(text: str, **fields: object) -> Candidate:
    return Candidate(text, source_message_ids=("m",), **fields)  # type: ignore[arg-type]


def rated(text: str, rules: Rules | None = None, **fields: object) -> Candidate:
    (found,) = (rules or Rules()).annotate([candidate(text, **fields)], [NOW])
    return found


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("My name is Ada, I live in Turku and I work as a nurse", "profile"),
        ("我叫小林,我住在上海", "profile"),
        ("I love jazz but I can't stand opera", "preferences"),
        ("我喜欢喝茶,讨厌咖啡", "preferences"),
        ("Bo's server: port 8080, version 12", "entities"),
        ("医生的电话和地址", "entities"),
        ("On Friday 3 July we booked the ferry", "events"),
        ("昨天决定下周搬家", "events"),
        ("The crash was caused by a typo; solved with a restart", "cases"),
        ("报错的原因找到了,已经解决", "cases"),
        ("Always make sure to run the checklist", "patterns"),
        ("每次一定要先看流程", "patterns"),
    ],
)
def test_most_cues_win(text: str, category: str) -> None:
    assert category_of(text) == category


def test_a_tie_goes_to_the_rarer_category() -> None:
    assert category_of("friday") == "events"
    assert category_of("solved friday") == "cases"  # one cue each


def test_a_cue_counts_once_and_only_as_a_whole_word() -> None:
    assert category_of("friday friday friday solved solution") == "cases"  # one against two
    assert category_of("dissolved midfriday unported") is None
    assert category_of("LET'S") == category_of("let's") == "events"


def test_words_of_a_cue_may_stand_on_two_lines() -> None:
    assert category_of("root\n cause") == "cases"


def test_a_text_without_a_cue_takes_the_fallback() -> None:
    assert category_of("hm") is None
    assert (rated("hm").category, rated("hm").importance) == ("other", 0.5)
    found = rated("hm", Rules(fallback="patterns"))
    assert (found.category, found.importance) == ("patterns", 0.85)


def test_importance_is_the_categorys() -> None:
    assert rated("My name is Ada").importance == 0.9
    assert rated("booked for friday").importance == 0.6


def test_expiry_can_be_switched_off_and_leaves_the_type() -> None:
    assert rated("My dog is ill today").valid_until == NOW + timedelta(hours=18)
    found = rated("My dog is ill today", Rules(expiry=False))
    assert (found.valid_until, found.temporal_type) == (None, "dynamic")


def test_the_full_narrative_says_how_long_it_holds() -> None:
    assert rated("Ada's dog: ill", content="Ada's dog is ill today").temporal_type == "dynamic"
    assert rated("ill today", content="Ada's dog is ill").temporal_type == "static"


def test_what_names_a_category_was_rated_by_its_maker() -> None:
    made = candidate("My name is Ada, today", category="cases", importance=0.1)
    assert Rules().annotate([made], [NOW]) == [made]


def test_no_annotation_leaves_everything() -> None:
    made = candidate("My name is Ada, today")
    assert NoAnnotation().annotate([made], [NOW]) == [made]


def test_an_unknown_fallback_is_refused() -> None:
    with pytest.raises(ValueError, match=r"fallback must be one of: cases, .*, other, .*, got 'fact'"):
        Rules(fallback="fact")


def test_each_candidate_needs_its_instant() -> None:
    with pytest.raises(ValueError, match="zip"):
        Rules().annotate([candidate("a"), candidate("b")], [NOW])
