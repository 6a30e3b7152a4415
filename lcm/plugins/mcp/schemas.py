"""The tools as an agent's program lists them: names, descriptions, and the JSON Schemas of their arguments."""

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from lcm.context.recall.grep import Mode, Scope

ID_CHARACTERS = 1000
_MOST_IDS = 100
_MOST_HITS = 200
_MOST_STEPS = 100
_MOST_TOKENS = 1_000_000


class ToolSchema(NamedTuple):
    """A tool: what it does, in words for a model, and what it takes."""

    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema."""
    is_of_grants: bool = True
    """Whether who reads within a grant has it."""


def _text(said: str, most: int | None = None, **more: Any) -> dict[str, Any]:
    bounds = {} if most is None else {"maxLength": most}
    return {"type": "string", "pattern": r"\S", **bounds, "description": said, **more}


def _number(said: str, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most, "description": said}


def _taking(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_CONVERSATION = _text("Only in this conversation: its id, or its number. Left out: in all.", ID_CHARACTERS)
_ID = "sum_..., msg#... or file_..., or the id that a message was recorded with."
_IDS = {"type": "array", "items": _text(_ID, ID_CHARACTERS), "minItems": 1, "maxItems": _MOST_IDS}

TOOLS: Mapping[str, ToolSchema] = {
    "search": ToolSchema(
        "Find what was said in earlier sessions by meaning and by words: the best documents first, with the ids of the "
        "messages that they stand for, which `describe` and `expand` take. Begin here when words may differ.",
        _taking(
            ("query",),
            query=_text("What is looked for, as a question or in words."),
            limit=_number("The most documents to give. Left out: 10.", _MOST_HITS),
        ),
        is_of_grants=False,
    ),
    "grep": ToolSchema(
        "Search earlier sessions for words or a regular expression: messages, those that no longer stand in a context "
        "too, and summaries. Gives snippets with ids, which `describe` and `expand` take.",
        _taking(
            ("pattern",),
            pattern=_text("Words that must all occur, or a regular expression."),
            mode={"enum": list(get_args(Mode)), "description": "How the pattern is read. Left out: full_text."},
            scope={"enum": list(get_args(Scope)), "description": "In what to search. Left out: both."},
            conversation=_CONVERSATION,
            since=_text("ISO 8601: nothing before that instant.", ID_CHARACTERS),
            before=_text("ISO 8601: only what is before that instant.", ID_CHARACTERS),
            limit=_number("The most messages to give, and again the most summaries. Left out: 50.", _MOST_HITS),
        ),
    ),
    "describe": ToolSchema(
        "Tell what is known of one summary, message or large file: its words and calls of tools, its time, what it was "
        "made of, and what expanding it would cost.",
        _taking(
            ("id",),
            id=_text(_ID, ID_CHARACTERS),
            conversation=_CONVERSATION,
            token_cap=_number("A longer message is clipped to it, with a mark. Left out: 4000.", _MOST_TOKENS),
            content={"type": "boolean", "description": "Of a file or a message: its whole text. Left out: false."},
        ),
    ),
    "expand": ToolSchema(
        "Read what summaries were made of, down to the messages with their calls of tools; or a message itself. For "
        "details that a summary leaves out.",
        _taking(
            ("ids",),
            ids={**_IDS, "description": f"What to read, in this order: {_ID}"},
            depth=_number("How many steps downwards; the messages are one. Left out: 3.", _MOST_STEPS),
            token_cap=_number("The most tokens of all that is read, within the server's own limit.", _MOST_TOKENS),
            messages={"type": "boolean", "description": "The messages of leaves too. Left out: true."},
            conversation=_CONVERSATION,
        ),
    ),
    "expand_query": ToolSchema(
        "Have a question answered from what summaries were made of: somebody else reads, within a budget, and gives a "
        "short answer with the ids that it rests on. Name words that find where to begin, or ids, or both.",
        {
            **_taking(
                ("prompt",),
                prompt=_text("The question."),
                query=_text("Words that find where to begin to read."),
                ids={**_IDS, "description": f"Where to begin to read: {_ID}"},
                conversation=_CONVERSATION,
                max_tokens=_number("The most tokens of the answer.", _MOST_TOKENS),
                token_cap=_number("The most tokens that are read for it.", _MOST_TOKENS),
            ),
            "anyOf": [{"required": ["query"]}, {"required": ["ids"]}],
        },
        is_of_grants=False,
    ),
    "context": ToolSchema(
        "The context of one earlier conversation as a model would be shown it now, within a budget: what was said "
        "last, and of what is older summaries, or what a question recalls. To go on where a session ended.",
        _taking(
            ("conversation",),
            conversation=_text("Its id, or its number.", ID_CHARACTERS),
            query=_text("What is about to be asked: what it recalls is shown too."),
            budget_tokens=_number("The most tokens to show. Left out: 4000.", _MOST_TOKENS),
        ),
        is_of_grants=False,
    ),
}
