"""Known items: rare statements, asked for by some of their words."""

from eval.questions.kinds import KnownItem
from eval.questions.making import Draft
from lcm.retrieval.ranking.evidence.text_facts import content_words
from tests.support.recorded_talk import Line, drafts, recorded

STATEMENT = "My grandmother planted seven walnut trees behind the old chapel."
LINES: list[Line] = [
    ("user", "Hello! How are you today?", 0),
    ("assistant", f"I am fine. {STATEMENT}", 0),
    ("user", "Those walnut trees must be tall by now, so many years later.", 0),
    ("assistant", "It was planted when somebody moved the chapel.", 0),
    ("user", "The ferry to Orkney leaves Scrabster harbour every Tuesday morning.", 0),
]
ALL, ALONE = KnownItem(rarest=1), KnownItem(rarest=1, around=0)


def by_place(kind: KnownItem, *lines: Line) -> dict[int, Draft]:
    return {draft.place: draft for draft in drafts(kind, recorded(lines))}


def test_a_question_keeps_some_content_words_of_a_statement_in_order_and_not_the_rarest() -> None:
    """Rare words of the messages around stand beside them."""
    found = by_place(ALONE, *LINES)
    assert set(found) == {1, 4}  # no questions, and nothing that leans on what was said before
    assert found[1].text == "planted walnut trees"  # said elsewhere too, but not together
    assert found[1].evidence == (1,)
    *kept, first, second = content_words(by_place(ALL, *LINES)[1].text)
    assert kept == ["planted", "walnut", "trees"]
    assert {first, second} <= {*content_words(LINES[0][1]), *content_words(LINES[2][1])} - {"walnut", "trees"}
    assert by_place(ALL, *LINES, LINES[1])[1].evidence == (1, 5)  # byte-equal copies are evidence
    assert set(by_place(KnownItem(), *LINES)) == {4}  # only the rarest statements
    for code in ("```\nmy grandmother planted seven walnut trees\n```", "x = {1: 2, 3: (4, 5)} + [6, 7]"):
        assert by_place(KnownItem(rarest=1, least_words=1), ("user", code, 0)) == {}


def test_the_words_tell_the_statement_from_all_other_messages() -> None:
    near = [*LINES, ("user", "My grandmother planted seven walnut trees behind the barn.", 0)]
    found = by_place(ALONE, *near)
    assert {"old", "chapel"} & set(found[1].text.split())
    assert "barn" in found[5].text
    assert "barn" not in by_place(ALL, *near)[5].text  # what was said before tells it apart


def test_who_spoke_is_named_where_speakers_have_names() -> None:
    found = {draft.place: draft.text for draft in drafts(ALL, recorded(LINES, authors=("Ada", "Bo")))}
    assert found[1].startswith("What did Bo say about ")
    assert found[4].startswith("What did Ada say about ")


def test_words_that_no_spaces_part_are_asked_for_by_their_pieces() -> None:
    (draft,) = drafts(ALL, recorded([("user", "来週の火曜日に東京駅の近くで編集会議があります。", 0)]))
    pieces = draft.text.split()
    assert all(piece in "来週の火曜日に東京駅の近くで編集会議があります。" for piece in pieces)
    assert max(map(len, pieces)) <= 4
