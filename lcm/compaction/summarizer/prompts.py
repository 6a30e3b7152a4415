"""What a language model is asked, by the depth of the summary to be made.

Source: the obligations are those of lossless-claw 0.6.3; the words are ours.
"""

import re
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from lcm.records import SummaryRequest

Variant = Literal["leaf_normal", "leaf_aggressive", "d1", "d2", "d3_plus"]

_TAG = re.compile(r"<(?=\s*/?\s*(?:previous_context|conversation_segment|conversation_to_condense))", re.IGNORECASE)
_TEMPLATES = Environment(
    loader=PackageLoader("lcm.compaction.summarizer", "prompts"),
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=False,
)


def variant(depth: int, is_aggressive: bool) -> Variant:
    """The prompt of a summary; there is one of each condensed depth, pressed or not."""
    if depth <= 0:
        return "leaf_aggressive" if is_aggressive else "leaf_normal"
    return "d1" if depth == 1 else "d2" if depth == 2 else "d3_plus"


def system_prompt() -> str:
    return _TEMPLATES.get_template("system.jinja").render()


def prompt(request: SummaryRequest, custom_instructions: str) -> str:
    """The prompt of a request; the texts inside it cannot close the tags that they stand in.

    Args:
        request: what is to be summarised.
        custom_instructions: the operator's wishes, told as they are.
    """
    return _TEMPLATES.get_template(f"{variant(request.depth, request.is_aggressive)}.jinja").render(
        text=_harmless(request.text),
        previous=_harmless(request.previous or ""),
        instructions=custom_instructions.strip() or "(none)",
        target_tokens=request.target_tokens,
    )


def _harmless(text: str) -> str:
    return _TAG.sub("&lt;", text.strip())
