"""Known items: rare statements, asked for by some of their words."""

import pytest

from eval.questions.making.kinds.known_item import KnownItem
from lcm.retrieval.ranking.evidence.haystack import content_words
from tests.support.recorded_talk import drafts, recorded

STATEMENT = "My grandmother planted seven walnut trees behind the old chapel."
LINES = [
    ("user", "Hello! How are you today?", 0),
    ("assistant", f"I am fine. {STATEMENT}", 0),
    ("user", "Those walnut trees must be tall by now, so many years later.", 0),
    ("assistant", "It was planted when somebody moved the chapel.", 0),
    ("user", "The ferry to Orkney leaves Scrabster harbour every Tuesday morning.", 0),
]
ALL = KnownItem(rarest=1)


def test_a_question_keeps_half_of_the_content_words_of_a_statement_in_order() -> None:
    found = {draft.place: draft for draft in drafts(ALL, recorded(LINES))}
    assert set(found) == {1, 4}  # no questions, and nothing that leans on what was said before
    words, held = found[1].text.split(), content_words(STATEMENT)
    assert [word for word in held if word in content_words(found[1].text)] == content_words(found[1].text)
    assert len(words) >= len(held) / 2
    assert found[1].evidence == (1,)


def test_the_words_tell_the_statement_from_all_other_messages() -> None:
    near = [*LINES, ("user", "My grandmother planted seven walnut trees behind the barn.", 0)]
    found = {draft.place: draft for draft in drafts(KnownItem(rarest=1, kept=0.1), recorded(near))}
    assert {"old", "chapel"} & set(found[1].text.split())
    assert "barn" in found[5].text


def test_byte_equal_copies_are_evidence() -> None:
    twice = [*LINES, LINES[1]]
    assert {draft.place: draft.evidence for draft in drafts(ALL, recorded(twice))}[1] == (1, 5)


def test_who_spoke_is_named_where_speakers_have_names() -> None:
    found = {draft.place: draft.text for draft in drafts(ALL, recorded(LINES, authors=("Ada", "Bo")))}
    assert found[1].startswith("What did Bo say about ")
    assert found[4].startswith("What did Ada say about ")


def test_only_the_rarest_statements_are_asked_for() -> None:
    assert {draft.place for draft in drafts(KnownItem(rarest=0.5), recorded(LINES))} == {4}


@pytest.mark.parametrize(
    "text", ["```\nmy grandmother planted seven walnut trees\n```", "x = {1: 2, 3: (4, 5)} + [6, 7]"]
)
def test_code_is_no_statement(text: str) -> None:
    assert drafts(KnownItem(rarest=1, least_words=1), recorded([("user", text, 0)])) == []


def test_words_that_no_spaces_part_are_asked_for_by_their_pieces() -> None:
    (draft,) = drafts(ALL, recorded([("user", "来週の火曜日に東京駅の近くで編集会議があります。", 0)]))
    pieces = draft.text.split()
    assert all(piece in "来週の火曜日に東京駅の近くで編集会議があります。" for piece in pieces)
    assert max(map(len, pieces)) <= 4
