"""What had ended, and what ended only later."""

from dataclasses import replace

import pytest

from eval.ladder.unseen import FOLDED, REPLACED, SESSION, SHOWN, _of_document, _Standing
from lcm.memory.memory import Memory
from lcm.records.query import Query
from tests.support.workspaces import lived_in, minute

ASKED = Query("q", "Is the kettle broken?", minute(60))
ENDED = _Standing("d", ["m"], "global", False, minute(0), minute(30))


def test_a_document_that_ended_is_told_by_what_came_after() -> None:
    with lived_in(1) as memory:
        assert isinstance(memory, Memory)
        assert _of_document(memory, ASKED, ENDED, set()) == FOLDED
        assert _of_document(memory, ASKED, ENDED, {"d"}) == REPLACED


@pytest.mark.parametrize("end", [61, 60])
def test_what_ends_after_the_question_stood_when_it_was_asked(end: int) -> None:
    """At the very instant it has ended."""
    later = ENDED._replace(invalidated_at=minute(end))
    with lived_in(1) as memory:
        assert isinstance(memory, Memory)
        assert _of_document(memory, ASKED, later, set()) == (SESSION if end > 60 else FOLDED)
        shown = replace(ASKED, shown_message_ids=("m",))
        assert _of_document(memory, shown, later, set()) == (SHOWN if end > 60 else FOLDED)
