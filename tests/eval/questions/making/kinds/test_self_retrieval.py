"""Self-retrieval: neighbouring words find the message that holds them."""

import pytest

from eval.questions.making.kinds.self_retrieval import SelfRetrieval
from tests.support.recorded_talk import drafts, recorded

TEXT = "Walnut trees, planted behind the chapel, shade twelve wooden benches near the harbour wall today."


def test_the_question_is_a_piece_of_the_message() -> None:
    (draft,) = drafts(SelfRetrieval(), recorded([("user", TEXT, 0), ("tool", f"{TEXT} result", 0)]))
    assert draft.text in TEXT
    assert len(draft.text.replace(",", "").split()) == 8


def test_every_message_that_holds_the_piece_is_evidence() -> None:
    quoted = recorded([("user", TEXT, 0), ("assistant", f"You said: {TEXT}", 0), ("user", TEXT, 1)])
    assert drafts(SelfRetrieval(), quoted)[0].evidence == (0, 1, 2)


def test_what_is_short_or_says_little_has_no_piece() -> None:
    lines = [
        ("user", "A short one about walnut trees.", 0),
        ("user", "it is what it is and so it will be for all", 0),
    ]
    assert drafts(SelfRetrieval(), recorded(lines)) == []


def test_more_content_than_words_is_refused() -> None:
    with pytest.raises(ValueError, match="least_content must be <= words, got 5 and 4"):
        SelfRetrieval(words=4, least_content=5)


def test_a_piece_that_many_messages_hold_is_asked_once() -> None:
    lines = [
        ("user", f"{number} walnut trees shade twelve wooden benches near harbour walls.", 0) for number in range(50)
    ]
    found = drafts(SelfRetrieval(), recorded(lines))
    texts = [draft.text for draft in found]
    assert len(set(texts)) == len(texts)
    assert (tuple(range(50)) in [draft.evidence for draft in found]) and len(found) < 50
