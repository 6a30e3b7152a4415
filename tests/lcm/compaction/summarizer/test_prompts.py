"""What the prompts of summaries must say, one phrase an obligation of lossless-claw 0.6.3."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.llm import prompt, system_prompt, variant
from lcm.records.summary import SummaryRequest

DEPTHS = {"leaf_normal": 0, "leaf_aggressive": 0, "d1": 1, "d2": 2, "d3_plus": 3}
LEAVES = ("leaf_normal", "leaf_aggressive")
INPUT = {name: "conversation_segment" if name in LEAVES else "conversation_to_condense" for name in DEPTHS}


def asked(name: str, text: str = "the words", previous: str | None = None, instructions: str = "") -> str:
    request = SummaryRequest(text, 321, DEPTHS[name], previous, is_aggressive=name == "leaf_aggressive")
    return prompt(request, instructions)


def section(name: str, title: str, previous: str | None = None) -> str:
    """What stands under a title, in lower case; under the empty title the opening words."""
    whole = f"# \n{asked(name, previous=previous)}"
    return whole.partition(f"# {title}\n")[2].partition("\n# ")[0].partition("\n\n<")[0].lower()


EVERY, OF_LEAVES = " ".join(DEPTHS), " ".join(LEAVES)
OBLIGATIONS = [
    (EVERY, "Output", "the last line must be: expand for details about: <comma-separated list"),
    (EVERY, "Output", "321 tokens"),
    (OF_LEAVES, "", "treat it as incremental memory"),
    (OF_LEAVES, "Output", "plain text only"),
    (OF_LEAVES, "Output", "with the file's path and its present status"),
    (OF_LEAVES, "Output", "if there were no file operations, include exactly: files: none\n"),
    ("leaf_normal", "Policy", "- keep decisions, their rationale, constraints and active tasks"),
    ("leaf_aggressive", "Policy", "- keep only durable facts and the current state of the task"),
    ("d1", "", "into one memory node"),
    ("d1", "Preserve", "- decisions that were superseded, and what replaced them"),
    ("d1", "Drop", "- dead ends"),
    ("d1", "Output", "a timeline with timestamps to the hour or half hour"),
    ("d2", "", "session-level summaries"),
    ("d2", "Preserve", "- decisions that are still in force"),
    ("d2", "Drop", "- stale identifiers"),
    ("d2", "Output", "a timeline with dates and the approximate time of day"),
    ("d3_plus", "", "a high-level memory node"),
    ("d3_plus", "Preserve", "- hard constraints"),
    ("d3_plus", "Drop", "- most references"),
    ("d3_plus", "Output", "a timeline with dates or ranges of dates"),
]


def test_prompts_meet_every_obligation() -> None:
    wanted = [(name, title, phrase) for names, title, phrase in OBLIGATIONS for name in names.split()]
    assert [one for one in wanted if one[2] not in section(*one[:2])] == []
    role = "compaction engine", "follow the instructions of the user message exactly"
    assert all(phrase in system_prompt().lower() for phrase in role)
    assert "reply with the plain text of the summary and with nothing else" in system_prompt().lower()


@pytest.mark.parametrize("name", DEPTHS)
def test_instructions_text_and_previous_context_stand_in_their_places(name: str) -> None:
    assert section(name, "Operator instructions").strip() == "(none)"
    assert "\n# Operator instructions\n\nName every ship.\n" in asked(name, instructions=" Name every ship.\n")
    assert "(none)" not in asked(name, previous="before", instructions="Name every ship.")
    markup = "if a < b & c > d: <b>{{ x }}</b> {% y %} 'q' \"r\" <turn>"
    assert asked(name, f" {markup}\n").endswith(f"\n\n<{INPUT[name]}>\n{markup}\n</{INPUT[name]}>")
    assert "\n<previous_context>\nbefore\n</previous_context>\n" in asked(name, previous="before")
    if name in LEAVES:
        for previous in (None, " "):
            assert "\n<previous_context>\n(none)\n</previous_context>\n" in asked(name, previous=previous)
    else:
        known = section(name, "What is known already", previous="before")
        assert "do not repeat information that is unchanged" in known
        assert "focus on what is new, changed or resolved" in known
        assert "previous_context" not in asked(name)


def test_each_depth_has_its_prompt_and_pressing_changes_that_of_a_leaf_alone() -> None:
    expected = {
        (0, False): "leaf_normal",
        (0, True): "leaf_aggressive",
        (1, False): "d1",
        (1, True): "d1",
        (2, True): "d2",
        (3, False): "d3_plus",
        (9, True): "d3_plus",
    }
    assert {of: variant(*of) for of in expected} == expected
    for (depth, is_aggressive), name in expected.items():
        assert prompt(SummaryRequest("the words", 321, depth, is_aggressive=is_aggressive), "") == asked(name)


SLY = st.lists(
    st.sampled_from(
        [
            *("<", "</", "< / ", ">", " ", "\n", "x", "{{ 7 * 7 }}", "{% raw %}", "&lt;"),
            *("previous_context", "Conversation_Segment", "conversation_to_condense"),
            *("</previous_context>", "</CONVERSATION_SEGMENT >", "< /conversation_to_condense>", "<previous_context>"),
        ]
    ),
    max_size=12,
).map("".join)


@given(name=st.sampled_from(sorted(DEPTHS)), text=SLY, previous=SLY)
def test_words_cannot_close_or_open_a_tag(name: str, text: str, previous: str) -> None:
    squeezed = "".join(asked(name, text, previous).split()).lower()
    for tag in set(INPUT.values()) | {"previous_context"}:
        times = tag == INPUT[name] or (tag == "previous_context" and (name in LEAVES or previous.strip() != ""))
        assert squeezed.count(f"<{tag}") == squeezed.count(f"</{tag}") == times
