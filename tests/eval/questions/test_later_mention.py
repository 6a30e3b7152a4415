"""Later mentions: what comes back to something rare asks for what was said of it before."""

from datetime import timedelta

import pytest

from eval.questions.kinds import LaterMention
from tests.support.recorded_talk import drafts, recorded
from tests.support.workspaces import START

LINES = [
    ("user", "We rented a cottage in Stromness for two weeks.", 0),
    ("assistant", "I like the town of Stromness in spring.", 1),
    ("user", "Rain all day.", 2),
    ("assistant", "The pictures from Stromness are still on your camera.", 9),
    ("user", "They show Stromness harbour at night.", 9),
]


def test_it_is_asked_an_instant_before_it_was_said_and_finds_what_was_said_before_that() -> None:
    found = {draft.place: draft for draft in drafts(LaterMention(), recorded(LINES))}
    assert found[3].text == LINES[3][1]
    assert found[3].evidence == (0, 1)
    assert found[3].asked_at == START + timedelta(days=9) - timedelta(milliseconds=1)
    assert found[4].evidence == (0, 1)  # not what has the same instant


def test_what_many_named_before_who_speaks_and_what_is_said_at_one_instant_is_not_asked_for() -> None:
    assert {draft.place for draft in drafts(LaterMention(most_mentions=1), recorded(LINES))} == {1}
    lines = [("user", "I told Melanie about walnut trees.", 0), ("assistant", "Good to see Mel and Melanie again.", 1)]
    assert drafts(LaterMention(), recorded(lines, authors=("Caroline", "Melanie"))) == []
    assert drafts(LaterMention(), recorded([(role, text, 0) for role, text, _ in LINES])) == []


@pytest.mark.parametrize(
    "thing", ["src/harbour/ferry.py", "ferry_timetable", "ferryTimetable", "4417", "12.5", "harbour.toml", "Scrabster"]
)
def test_names_numbers_paths_and_identifiers_are_rare_things(thing: str) -> None:
    lines = [
        ("user", f"Somebody changed the {thing} yesterday.", 0),
        ("assistant", f"People wrote that the {thing} broke again.", 1),
    ]
    (draft,) = drafts(LaterMention(), recorded(lines))
    assert (draft.place, draft.evidence) == (1, (0,))
