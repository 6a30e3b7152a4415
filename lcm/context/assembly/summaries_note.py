"""What a system prompt adds when summaries stand in the context: how to read them, and when to ask for more.

Source: the obligations of lossless-claw 0.6.3; the words are ours.
"""

from collections.abc import Iterable
from typing import Literal

from lcm.records.summary import Summary

_HEAD = """\
## Compacted history

Earlier parts of this conversation have been compacted into summaries, shown as <summary> elements. A summary is a \
compressed cue to what was said. It does not prove exact wording or exact values. Where a summary closes with \
"Expand for details about:", what follows names the details that it leaves out: take that line as the cue to expand it.
"""

_LIGHT = """
For such details, search with lcm_grep, then ask lcm_expand_query a focused question, and name the ids of the \
summaries that you rely on. State your uncertainty where you have not expanded.
"""

_HEAVY = """
This history has been compacted deeply. Expand before you state any of these: exact commands, commit SHAs, file paths, \
timestamps, configuration values, or what caused what.

How to recall:
1. lcm_grep finds where something was said.
2. lcm_expand_query, with a focused prompt, answers from the full messages beneath the summaries.
3. Cite the ids of the summaries that the answer rests on.

Before you answer, check what is uncertain:
- Is it exact, or is it taken from a compressed summary?
- Could something newer have replaced it?
- If it is wrong, does it do harm?
If any of these gives you pause, expand first, or say that you are not sure.

Never guess at a detail that a summary does not hold: expand, or say that you do not know.
"""

Tier = Literal["none", "light", "heavy"]


def tier(summaries: Iterable[Summary]) -> Tier:
    """Say how much of the note is due: `heavy` from a depth of 2, or from two condensed summaries, on."""
    depths = [summary.depth if summary.kind == "condensed" else 0 for summary in summaries]
    if not depths:
        return "none"
    return "heavy" if max(depths) >= 2 or sum(depth > 0 for depth in depths) >= 2 else "light"


def summaries_note(summaries: Iterable[Summary]) -> str:
    due = tier(summaries)
    return "" if due == "none" else _HEAD + (_HEAVY if due == "heavy" else _LIGHT)
