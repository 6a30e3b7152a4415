"""Successors: a question of the talk asks for the reply that it had."""

from eval.questions.kinds import Successor
from tests.support.recorded_talk import drafts, recorded

LINES = [
    ("user", "Nice day. Which ferry goes to the Orkney islands?", 0),
    ("assistant", "The Scrabster ferry sails every Tuesday.", 0),
    ("user", "Thanks a lot.", 0),
    ("assistant", "Which cabin do you prefer, inside or outside?", 0),
    ("assistant", "Outside cabins have windows over the sea.", 0),
    ("user", "Which ferry goes to the Orkney islands, again?", 0),
    ("assistant", "Yes.", 0),
]


def test_the_reply_of_another_speaker_is_evidence() -> None:
    found = drafts(Successor(), recorded(LINES))
    assert [(draft.place, draft.text, draft.evidence) for draft in found] == [
        (0, "Which ferry goes to the Orkney islands?", (1,))  # nobody else replied to 3, 6 says too little
    ]


def test_a_question_asked_twice_has_both_replies_and_their_copies_as_evidence() -> None:
    again = [*LINES, LINES[0], ("assistant", "The Gills Bay catamaran sails daily.", 0), LINES[1]]
    (draft,) = (draft for draft in drafts(Successor(), recorded(again)) if draft.text == LINES[0][1][10:].strip())
    assert draft.evidence == (1, 8, 9)


def test_any_message_has_a_successor_where_that_is_asked_for() -> None:
    found = {draft.place: draft for draft in drafts(Successor(only_questions=False), recorded(LINES))}
    assert set(found) == {0, 4}
    assert found[4].text == "Outside cabins have windows over the sea."
    assert found[4].evidence == (5,)


def test_a_long_question_is_asked_by_its_last_words_and_a_conversation_ends_where_it_ends() -> None:
    (draft,) = drafts(Successor(most_words=6), recorded(LINES[:2]))
    assert draft.text == "ferry goes to the Orkney islands?"
    one, other = recorded(LINES[:1], "one"), recorded(LINES[1:2], "other")
    assert drafts(Successor(), one, other) == []
