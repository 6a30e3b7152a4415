"""How a call of the contract becomes a call of an MCP tool, and what the tool says becomes texts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval.external.contract import FaultError

_NAME = re.compile(r"\{(\w+)\}")
_OF_MESSAGES = ("id", "role", "content", "author", "created_at", "session_id", "conversation_id", "messages")
_OF_QUERIES = ("query", "k", "asked_at", "scopes", "budget_tokens")
NAMES = ("workspace", "settings", *_OF_MESSAGES, *_OF_QUERIES)
"""What arguments may name in braces."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that takes something in."""

    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """The tool's own arguments, JSON: `{content}` in a text is the call's argument of that name, and a text that is
    nothing else is that argument itself, be it a number or a list."""
    is_each: bool = True
    """Of `add`: a call for each message; else one for `{messages}`."""

    def __post_init__(self) -> None:
        check_named(self.arguments)


@dataclass(frozen=True, slots=True)
class SearchTool:
    """A tool that finds something."""

    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """As of `Tool`."""
    results: str | None = "results"
    """Where the list of results stands in the structured content, or in the JSON of the text: keys with dots between,
    empty for the whole; null: each text block is a result."""
    separator: str | None = None
    """What stands between the results of a text block; null: a block is one."""
    text: str = "text"
    """Where a result has its text; a list there is joined by line breaks. A result that is a text itself is one."""
    score: str | None = "score"
    source_ids: str | None = None
    """Where it names the messages that it is of: a text, or a list."""

    def __post_init__(self) -> None:
        check_named(self.arguments)

    def found(self, texts: Sequence[str], structured: Any) -> list[dict[str, Any]]:
        """The results as a reply to `search` has them.

        Args:
            texts: of the text blocks.
            structured: the structured content, None where there is none.
        Raises:
            FaultError: if what the tool said holds no such results.
        """
        if self.results is None:
            parts = [one for text in texts for one in (text.split(self.separator) if self.separator else [text])]
            return [{"text": one.strip()} for one in parts if one.strip()]
        whole = structured if structured is not None else _json("".join(texts))
        listed = at(whole, self.results)
        if not isinstance(listed, list):
            raise FaultError("wrong reply", f"{self.name} gives no list at {self.results!r}", is_end=False)
        return [self._result(one) for one in listed]

    def _result(self, one: Any) -> dict[str, Any]:
        text = one if isinstance(one, str) else at(one, self.text)
        ids = None if self.source_ids is None else at(one, self.source_ids)
        return {
            "text": "\n".join(map(str, text)) if isinstance(text, list) else text,
            "score": None if self.score is None else at(one, self.score),
            "source_ids": [ids] if isinstance(ids, str) else ids,
        }


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Arguments of a tool with what they name in its place."""
    if isinstance(template, Mapping):
        return {name: filled(one, values) for name, one in template.items()}
    if isinstance(template, list | tuple):
        return [filled(one, values) for one in template]
    if not isinstance(template, str):
        return template
    if whole := _NAME.fullmatch(template):
        return values.get(whole[1])
    return _NAME.sub(lambda found: str(values.get(found[1]) or "") if found[1] in NAMES else found[0], template)


def named(template: Any) -> list[str]:
    """What arguments name in braces."""
    return _NAME.findall(json.dumps(template, default=str))


def check_named(template: Any) -> None:
    """Refuse arguments that name what no call has.

    Raises:
        ValueError: naming it, with what there is.
    """
    for name in named(template):
        if name not in NAMES:
            raise ValueError(f"arguments name {{{name}}}, which no call has; choose from: {', '.join(NAMES)}")


def at(node: Any, path: str) -> Any:
    """What stands at keys with dots between; None where nothing does."""
    for name in filter(None, path.split(".")):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
