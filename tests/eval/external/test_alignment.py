"""Which messages a text stands for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.external.reading import Aligned, Aligner, foreign_texts

SAID = (
    ("m0", "I moved the meeting with Ada to Thursday, because the room is taken.", "Bo"),
    ("m1", "Yes.", "Ada"),
    ("m2", "The database migration failed with a timeout after forty minutes.", "Bo"),
    ("m3", "来週の火曜日に東京で会議があります。資料は佐藤さんが持ってきます。", "Ada"),
    ("m4", "Yes.", "Ada"),
    ("m5", "My sister keeps three goats near the river, and one of them is called Ada.", None),
)
BROKE = SAID[2][1].replace("failed", "broke")


def align(
    text: str, named: list[str] | None = None, added: int = len(SAID), foreign: set[str] = frozenset()
) -> Aligned:  # type: ignore[assignment]
    return Aligner(SAID, foreign, 0.85).align(text, named, added)


@pytest.mark.parametrize(
    ("text", "ids", "how"),
    [
        ("The database migration failed with a timeout after forty minutes.", ["m2"], "exact"),
        ("  the DATABASE migration\nfailed with a timeout after forty minutes. ", ["m2"], "exact"),
        ("Bo: The database migration failed with a timeout after forty minutes.", ["m2"], "exact"),
        ("assistant: The database migration failed with a timeout after forty minutes.", ["m2"], "exact"),
        ("database migration failed with a timeout", ["m2"], "exact"),
        (f"## Notes\n- {SAID[0][1]}\n- {SAID[3][1]}\n", ["m0", "m3"], "exact"),
        (f"Bo: {SAID[0][1]}\nAda: Yes.\nBo: {SAID[2][1]}", ["m0", "m1", "m2", "m4"], "exact"),
        ("Yes.", ["m1", "m4"], "exact"),
        ("I moved the meeting with Ada to Thursday, since the room is taken.", ["m0"], "near"),
        ("The databse migration failed wth a timeout after 40 minutes.", ["m2"], "near"),
        ("来週の水曜日に東京で会議があります。資料は佐藤さんが持参してきます。", ["m3"], "near"),
        (f"Bo: {BROKE}\nBo: I moved the meetings with Ada to Thursday, as the room is taken", ["m0", "m2"], "near"),
        ("昨日の夜は友達と一緒に映画館へ行って、とても楽しかったです。", [], "none"),
        ("Alice is allergic to nuts.", [], "none"),
        ("The user has a sibling who likes animals and lives by the water.", [], "none"),
    ],
)
def test_a_text_stands_for_the_messages_whose_words_it_repeats_or_nearly(text: str, ids: list[str], how: str) -> None:
    assert align(text) == Aligned(tuple(ids), how)


def test_what_was_not_added_yet_stands_for_nothing_and_for_no_earlier_message() -> None:
    assert align(SAID[5][1], added=5) == align(SAID[5][1], ["m0"], added=5) == Aligned((), "early")
    assert align(SAID[5][1].replace("three goats", "four goats"), added=5) == Aligned((), "early"), "though edited"
    assert align(SAID[5][1], ["m5"], added=5) == Aligned((), "early", unknown_ids=1)


def test_what_was_said_elsewhere_is_known_as_that_under_an_id_of_ours_too() -> None:
    """Ids are unique in a workspace, and may come again in the next."""
    words = "In the other house nobody ever mentions the goats."
    foreign = foreign_texts([f"Bo: {words}", "Yes."], [words, "Yes.", "what nobody returned, said elsewhere"])
    assert foreign == {words}
    assert align(f"Bo: {words}", foreign=foreign).how == "foreign"
    assert align(words, ["m2"], foreign=foreign) == Aligned((), "foreign")
    assert align(SAID[0][1], foreign={SAID[0][1]}).how == "exact"


@pytest.mark.parametrize(
    ("text", "named", "expected"),
    [
        (SAID[0][1], ["m0"], Aligned(("m0",), "named")),
        (SAID[0][1].replace("meeting", "meetings"), ["m0"], Aligned(("m0",), "named", is_edited=True)),
        ("Bo has to see Ada later this week.", ["m0"], Aligned(("m0",), "named", is_retold=True)),
        (f"{SAID[2][1]} And goats.", ["m2", "m5"], Aligned(("m2", "m5"), "named", is_retold=True)),
        (SAID[0][1], ["m0", "nobody"], Aligned(("m0",), "named", unknown_ids=1)),
        (SAID[0][1], ["nobody"], Aligned(("m0",), "exact", unknown_ids=1)),
        ("goats", [name for name, *_ in SAID], Aligned((), "none", is_overstated=True)),
        (SAID[5][1], ["m2"], Aligned(("m5",), "exact", is_misnamed=True)),
    ],
)
def test_named_messages_are_believed_where_the_text_holds_or_retells_them(
    text: str, named: list[str], expected: Aligned
) -> None:
    assert align(text, named) == expected
    assert align("Yes.", ["m2"]).message_ids == ("m2",), "a word may stand for much"


@given(st.text(max_size=80), st.lists(st.sampled_from(["m0", "m1", "m5", "x", ""]), max_size=4), st.integers(0, 6))
def test_no_text_stands_for_what_was_not_added(text: str, named: list[str], added: int) -> None:
    found = align(text, named, added)
    assert set(found.message_ids) <= {name for name, *_ in SAID[:added]}
    assert (found.how in ("named", "exact", "near")) == bool(found.message_ids)
    assert align(text, named, added) == found


@pytest.mark.parametrize("filler", ["x " * 60, ""])
def test_words_that_come_again_pay_for_no_further_message(filler: str) -> None:
    found = align(f"{SAID[2][1]} {filler}", ["m0", "m2", "m3", "m5"])
    assert found == Aligned(("m2",), "named", is_overstated=True)
    assert align(filler or "x", ["m0", "m2"]) == Aligned((), "none", is_overstated=True)
