"""Candidates rated by rule."""

from datetime import UTC, datetime, timedelta

import pytest

from lcm.records.document import Candidate
from lcm.writing.annotation import NoAnnotation, Rules, categories_of

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)
CATEGORIES = {
    "My name is Ada, I live in Turku and I work as a nurse": "profile",
    "我叫小林,我住在上海": "profile",
    "I love jazz but I can't stand opera": "preferences",
    "我喜欢喝茶,讨厌咖啡": "preferences",
    "Bo's server: port 8080, version 12": "entities",
    "医生的电话和地址": "entities",
    "On Friday 3 July we booked the ferry": "events",
    "昨天决定下周搬家": "events",
    "The crash was caused by a typo; solved with a restart": "cases",
    "报错的原因找到了,已经解决": "cases",
    "Always make sure to run the checklist": "patterns",
    "每次一定要先看流程": "patterns",
    "friday": "events",
    "solved friday": "cases",  # one cue each: the rarer category
    "friday friday friday solved solution": "cases",  # a cue counts once: one against two
    "dissolved midfriday unported": None,  # no whole word
    "LET'S": "events",
    "root\n cause": "cases",
    "hm": None,
}


def candidate(text: str, **fields: object) -> Candidate:
    return Candidate(text, source_message_ids=("m",), **fields)  # type: ignore[arg-type]


def rated(text: str, rules: Rules | None = None, **fields: object) -> Candidate:
    (found,) = (rules or Rules()).annotate([candidate(text, **fields)], [NOW])
    return found


def test_most_cues_win() -> None:
    assert dict(zip(CATEGORIES, categories_of(list(CATEGORIES)), strict=True)) == CATEGORIES


def test_importance_is_the_categorys_and_a_text_without_a_cue_takes_the_fallback() -> None:
    rows = {"My name is Ada": ("profile", 0.9), "booked for friday": ("events", 0.6), "hm": ("other", 0.5)}
    assert {text: (rated(text).category, rated(text).importance) for text in rows} == rows
    found = rated("hm", Rules(fallback="patterns"))
    assert (found.category, found.importance) == ("patterns", 0.85)


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
    unnamed = candidate("My name is Ada, today")
    assert NoAnnotation().annotate([unnamed], [NOW]) == [unnamed]


def test_an_unknown_fallback_and_a_candidate_without_its_instant_are_refused() -> None:
    with pytest.raises(ValueError, match=r"fallback must be one of: cases, .*, other, .*, got 'fact'"):
        Rules(fallback="fact")
    with pytest.raises(ValueError, match="zip"):
        Rules().annotate([candidate("a"), candidate("b")], [NOW])
