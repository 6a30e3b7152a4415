"""What the system prompt is told of summaries."""

from lcm.context.assembly.lossless import summaries_note, tier
from tests.lcm.context.assembly.recorded import summary

LEAF, CONDENSED, DEEP = summary("a"), summary("a", depth=1), summary("a", depth=2)
BOTH = (
    *("compacted", "compressed cue", "not prove exact wording", '"Expand for details about:"', "lcm_grep"),
    *("lcm_expand_query", "ids of the summaries"),
)
HEAVY = (
    *("exact commands", "SHAs", "file paths", "timestamps", "configuration values", "what caused what"),
    *("Expand before you state", "focused prompt", "Cite the ids", "check what is uncertain", "Never guess"),
)


def test_the_note_is_long_where_much_was_condensed() -> None:
    due = {"none": [[]], "light": [[LEAF] * 5, [LEAF, CONDENSED]], "heavy": [[CONDENSED, CONDENSED], [DEEP]]}
    for name, contexts in due.items():
        assert [tier(one) for one in contexts] == [name] * len(contexts)
        assert {bool(summaries_note(one)) for one in contexts} == {name != "none"}


def test_each_note_says_what_it_must() -> None:
    light, heavy = summaries_note([LEAF]), summaries_note([DEEP])
    assert [phrase for phrase in (*BOTH, "State your uncertainty") if phrase not in light] == []
    assert [phrase for phrase in (*BOTH, *HEAVY) if phrase not in heavy] == []
    assert [phrase for phrase in HEAVY if phrase in light] == []
    steps = [heavy.index(step) for step in ("1. lcm_grep", "2. lcm_expand_query", "3. Cite the ids")]
    assert steps == sorted(steps)
