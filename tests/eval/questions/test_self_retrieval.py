"""Self-retrieval: neighbouring words find the message that holds them."""

import pytest

from eval.questions.kinds import SelfRetrieval
from tests.support.recorded_talk import drafts, recorded

TEXT = "Walnut trees, planted behind the chapel, shade twelve wooden benches near the harbour wall today."


def test_the_question_is_a_piece_of_the_message_and_all_that_hold_it_are_evidence() -> None:
    (draft,) = drafts(SelfRetrieval(), recorded([("user", TEXT, 0), ("tool", f"{TEXT} result", 0)]))
    assert draft.text in TEXT
    assert len(draft.text.replace(",", "").split()) == 8
    quoted = recorded([("user", TEXT, 0), ("assistant", f"You said: {TEXT}", 0), ("user", TEXT, 1)])
    assert drafts(SelfRetrieval(), quoted)[0].evidence == (0, 1, 2)


def test_what_is_short_or_says_little_has_no_piece() -> None:
    for text in ("A short one about walnut trees.", "it is what it is and so it will be for all"):
        assert drafts(SelfRetrieval(), recorded([("user", text, 0)])) == []
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
