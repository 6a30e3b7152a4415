"""What is related to an answer is shown with it in a context, and changes no answer."""

import pytest

from lcm.context.assembly.continuity import Continuity
from lcm.memory.memory import Memory
from lcm.records.context import ContextItem
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.stages.scores import RawScore
from lcm.retrieval.ranking.stages.selection import Limit, Related
from lcm.retrieval.source.indexes import Lexical
from lcm.token_estimator import Utf16Units
from tests.support.workspaces import minute, system, transcript

ASKED = Query("q", "goats", minute(600), conversation_id="another talk")


def remembering(per_result: int) -> Memory:
    by_words = RawScore("bm25")
    stages = {"score": by_words, "limit": Limit(1), "related": Related({"score": by_words}, per_result=per_result)}
    memory = Memory.open(system(ranking=Ranking(Lexical(), stages), assembly=Continuity(Utf16Units())))
    memory.ingest(transcript())
    memory.ingest(transcript(["Good night"], "another talk"))
    return memory


def recalled(memory: Memory) -> ContextItem:
    """The one document that a context shows besides its tail."""
    (item,) = (item for item in memory.context(ASKED, 1000).items if item.context_tier == "recalled")
    return item


@pytest.mark.parametrize("per_result", [1, 2])
def test_a_context_shows_what_is_related_and_pays_for_it(per_result: int) -> None:
    with remembering(0) as without, remembering(per_result) as memory:
        bare, shown = recalled(without), recalled(memory)
        related = memory.recalled(memory.rank([ASKED]))["q"][0].related
    assert len(related) == per_result
    assert shown.text == bare.text.replace("</entry>", f"\nRelated: {' | '.join(related)}</entry>")
    assert shown.tokens > bare.tokens


def test_answers_are_the_same_with_it_and_without() -> None:
    with remembering(0) as without, remembering(2) as memory:
        one, other = (held.rank([ASKED]).drop("related") for held in (without, memory))
    assert one.equals(other)
