"""What had ended, and what ended only later."""

from dataclasses import replace

from eval.ladder.losses import FOLDED, REPLACED, SESSION, SHOWN, _of_document, _Standing
from lcm.memory.memory import Memory
from lcm.records.query import Query
from tests.support.workspaces import lived_in, minute

ASKED = Query("q", "Is the kettle broken?", minute(60))
ENDED = _Standing("d", ["m"], "global", False, minute(0), minute(30))


def test_a_document_that_ended_is_told_by_what_came_after_unless_it_stood_when_it_was_asked() -> None:
    shown = replace(ASKED, shown_message_ids=("m",))
    later = ENDED._replace(invalidated_at=minute(61))
    at_the_instant = ENDED._replace(invalidated_at=minute(60))
    with lived_in(1) as memory:
        assert isinstance(memory, Memory)
        for standing, asked, after, told in (
            (ENDED, ASKED, set(), FOLDED),
            (ENDED, ASKED, {"d"}, REPLACED),
            (later, ASKED, set(), SESSION),
            (later, shown, set(), SHOWN),
            (at_the_instant, ASKED, set(), FOLDED),
            (at_the_instant, shown, set(), FOLDED),
        ):
            assert _of_document(memory, asked, standing, after) == told, (standing, asked)
