"""What the prompts of summaries must say, one test an obligation of lossless-claw 0.6.3."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.llm import prompt, system_prompt, variant
from lcm.records.summary import SummaryRequest

DEPTHS = {"leaf_normal": 0, "leaf_aggressive": 0, "d1": 1, "d2": 2, "d3_plus": 3}
LEAVES = ("leaf_normal", "leaf_aggressive")
CONDENSED = ("d1", "d2", "d3_plus")
INPUT = {name: "conversation_segment" if name in LEAVES else "conversation_to_condense" for name in DEPTHS}


def asked(name: str, text: str = "the words", previous: str | None = None, instructions: str = "") -> str:
    request = SummaryRequest(text, 321, DEPTHS[name], previous, is_aggressive=name == "leaf_aggressive")
    return prompt(request, instructions)


def section(name: str, title: str, previous: str | None = None) -> str:
    """What stands under a title, in lower case; under the empty title the opening words."""
    whole = f"# \n{asked(name, previous=previous)}"
    return whole.partition(f"# {title}\n")[2].partition("\n# ")[0].partition("\n\n<")[0].lower()


OBLIGATIONS = [
    *[
        (name, title, obligation, phrase)
        for name in LEAVES
        for title, obligation, phrase in (
            ("", "a segment, for future turns", "one segment of a conversation for the model's future turns"),
            ("", "incremental memory", "treat it as incremental memory"),
            ("", "no summary of the whole", "not a summary of the whole conversation"),
            ("Output", "plain text", "plain text only"),
            ("Output", "no preamble", "no preamble"),
            ("Output", "no headings", "no headings"),
            ("Output", "no markdown", "no markdown"),
            ("Output", "concise", "be concise"),
            ("Output", "file operations", "every file operation (create, modify, delete, rename)"),
            ("Output", "paths and status", "with the file's path and its present status"),
            ("Output", "no file operations", "if there were no file operations, include exactly: files: none\n"),
        )
    ],
    ("leaf_normal", "Policy", "keep decisions", "- keep decisions, their rationale, constraints and active tasks"),
    ("leaf_normal", "Policy", "keep details", "- keep the technical details that are needed to continue"),
    ("leaf_normal", "Policy", "drop filler", "- drop repetition and conversational filler"),
    ("leaf_aggressive", "Policy", "durable facts alone", "- keep only durable facts and the current state of the task"),
    ("leaf_aggressive", "Policy", "drop narrative", "- drop examples, repetition and narrative"),
    ("leaf_aggressive", "Policy", "keep TODOs", "- keep explicit todos, blockers, decisions and constraints"),
    ("d1", "", "one node", "into one memory node"),
    ("d1", "", "a fresh model continues", "a fresh model instance"),
    ("d1", "", "a fresh model continues", "will continue the conversation"),
    ("d1", "Preserve", "decisions", "- decisions, each with the rationale that is still relevant"),
    ("d1", "Preserve", "superseded decisions", "- decisions that were superseded, and what replaced them"),
    ("d1", "Preserve", "finished work", "- finished work, with its outcome"),
    ("d1", "Preserve", "work in progress", "- work in progress, and what remains to be done"),
    ("d1", "Preserve", "blockers", "- blockers and open questions"),
    ("d1", "Preserve", "references", "- concrete references: names, paths, urls, ids"),
    ("d1", "Drop", "unchanged context", "- context that has not changed"),
    ("d1", "Drop", "dead ends", "- dead ends"),
    ("d1", "Drop", "resolved transients", "- transient problems that are resolved"),
    ("d1", "Drop", "tool mechanics", "- the mechanics of tools"),
    ("d1", "Output", "chronological", "in chronological order"),
    ("d1", "Output", "hours", "a timeline with timestamps to the hour or half hour"),
    ("d1", "Output", "free structure", "choose the structure freely"),
    ("d2", "", "session-level nodes", "session-level summaries"),
    ("d2", "", "trajectory", "convey the trajectory of the work, not the details of each session"),
    ("d2", "Preserve", "decisions in force", "- decisions that are still in force"),
    ("d2", "Preserve", "evolved decisions", "- decisions that evolved, and why"),
    ("d2", "Preserve", "completed work", "- completed work"),
    ("d2", "Preserve", "constraints", "- active constraints and known issues"),
    ("d2", "Preserve", "ongoing work", "- the state of ongoing work"),
    ("d2", "Drop", "session-local operations", "- operations that mattered only within a session"),
    ("d2", "Drop", "stale identifiers", "- stale identifiers"),
    ("d2", "Drop", "intermediate states", "- intermediate states that were superseded"),
    ("d2", "Output", "dates", "a timeline with dates and the approximate time of day"),
    ("d2", "Output", "headers", "brief headers are allowed"),
    ("d3_plus", "", "high-level", "a high-level memory node"),
    ("d3_plus", "", "may persist", "may persist for the rest of the conversation"),
    ("d3_plus", "", "durable context alone", "keep only durable context"),
    ("d3_plus", "Preserve", "key decisions", "- key decisions, with their rationale"),
    ("d3_plus", "Preserve", "accomplishments", "- what was accomplished, and the current state"),
    ("d3_plus", "Preserve", "hard constraints", "- hard constraints"),
    ("d3_plus", "Preserve", "relationships", "- relationships between people, systems and concepts"),
    ("d3_plus", "Preserve", "lessons", "- lessons learned"),
    ("d3_plus", "Drop", "process and method", "- details of process and method"),
    ("d3_plus", "Drop", "most references", "- most references"),
    ("d3_plus", "Output", "dates or ranges", "a timeline with dates or ranges of dates"),
    *[
        (name, "Output", "the footer is last", "the last line must be: expand for details about: <comma-separated list")
        for name in DEPTHS
    ],
    *[(name, "Output", "names what was dropped", "list of what was dropped or compressed>") for name in DEPTHS],
    *[(name, "Output", "target length", "321 tokens") for name in DEPTHS],
]


def test_it_meets_every_obligation() -> None:
    assert [(name, what) for name, title, what, phrase in OBLIGATIONS if phrase not in section(name, title)] == []


@pytest.mark.parametrize(
    "phrase",
    [
        "compaction engine",
        "follow the instructions of the user message exactly",
        "reply with the plain text of the summary and with nothing else",
    ],
)
def test_the_system_prompt_gives_the_role(phrase: str) -> None:
    assert phrase in system_prompt().lower()


@pytest.mark.parametrize("name", DEPTHS)
def test_the_operators_instructions_stand_under_their_title(name: str) -> None:
    assert section(name, "Operator instructions", None).strip() == "(none)"
    assert "\n# Operator instructions\n\nName every ship.\n" in asked(name, instructions=" Name every ship.\n")
    assert "(none)" not in asked(name, previous="before", instructions="Name every ship.")


@pytest.mark.parametrize("name", DEPTHS)
def test_the_text_stands_in_its_tag_at_the_end(name: str) -> None:
    assert asked(name, " the words\n").endswith(f"\n\n<{INPUT[name]}>\nthe words\n</{INPUT[name]}>")


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_always_has_a_previous_context(name: str) -> None:
    assert "\n<previous_context>\n(none)\n</previous_context>\n" in asked(name)
    assert "\n<previous_context>\n(none)\n</previous_context>\n" in asked(name, previous=" ")
    assert "\n<previous_context>\nbefore\n</previous_context>\n" in asked(name, previous="before")


@pytest.mark.parametrize("name", CONDENSED)
def test_a_condensed_summary_does_not_repeat_a_previous_one(name: str) -> None:
    known = section(name, "What is known already", previous="before")
    assert "do not repeat information that is unchanged" in known
    assert "focus on what is new, changed or resolved" in known
    assert "\n<previous_context>\nbefore\n</previous_context>\n" in asked(name, previous="before")
    assert "previous_context" not in asked(name)


@pytest.mark.parametrize(
    ("depth", "is_aggressive", "name"),
    [
        (0, False, "leaf_normal"),
        (0, True, "leaf_aggressive"),
        (1, False, "d1"),
        (1, True, "d1"),
        (2, True, "d2"),
        (3, False, "d3_plus"),
        (9, True, "d3_plus"),
    ],
)
def test_each_depth_has_its_prompt_and_pressing_changes_that_of_a_leaf_alone(
    depth: int, is_aggressive: bool, name: str
) -> None:
    assert variant(depth, is_aggressive) == name
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


@pytest.mark.parametrize("name", DEPTHS)
@given(text=SLY, previous=SLY)
def test_words_cannot_close_or_open_a_tag(name: str, text: str, previous: str) -> None:
    shown = asked(name, text, previous)
    squeezed = "".join(shown.split()).lower()
    for tag in set(INPUT.values()) | {"previous_context"}:
        times = tag == INPUT[name] or (tag == "previous_context" and (name in LEAVES or previous.strip() != ""))
        assert squeezed.count(f"<{tag}") == squeezed.count(f"</{tag}") == times


@pytest.mark.parametrize("name", DEPTHS)
def test_other_markup_reaches_the_model_as_it_is(name: str) -> None:
    text = "if a < b & c > d: <b>{{ x }}</b> {% y %} 'q' \"r\" <turn>"
    assert text in asked(name, text)
