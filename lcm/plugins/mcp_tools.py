"""The tools of an agent over one store: arguments by name in, text out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator

from lcm.clock import parse_instant
from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.grants import Clock
from lcm.context.recall.grep import grep_text, minute
from lcm.context.recall.reader import Reader, described_text
from lcm.context.recall.recall import Recall
from lcm.encoding import from_yaml
from lcm.errors import LcmError, StoreError
from lcm.javascript import first_units, utf16_length
from lcm.memory.memory import Memory
from lcm.memory.scopes import Identity
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.store.conversations import conversation_names
from lcm.store.store import Store
from lcm.writing.dream import DREAM, is_dream_of

_MOST_PROBLEMS = 3
_HITS = 10
_BUDGET_TOKENS = 4000
_TOLD = 100
"""Characters, at its beginning and again at its end, of what a refusal repeats of a request."""


class ToolSchema(NamedTuple):
    """A tool: what it does, in words for a model, and what it takes."""

    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema."""
    is_of_grants: bool = True
    """Whether who reads within a grant has it."""


TOOLS: Mapping[str, ToolSchema] = {
    name: ToolSchema(**told)
    for name, told in from_yaml(resources.files(__package__).joinpath("mcp_tools.yaml").read_text("utf-8")).items()
}
_VALIDATORS = {name: Draft202012Validator(tool.parameters) for name, tool in TOOLS.items()}


class OpenedMemory:
    """Opened when it is first asked for, and kept in step with the store.

    Where nothing may be written it is a copy in this process alone, made again once the store has changed: the
    documents that the store lacks are made in the copy, and what counts as used is forgotten with it.
    """

    def __init__(self, system: System, path: Path, store: Store, *, may_write: bool) -> None:
        """
        Args:
            store: the same file, open: it tells when others have written.
        """
        self._system, self._path, self._store, self._may_write = system, path, store, may_write
        self._memory: Memory | None = None
        self._version = 0

    def current(self) -> Memory:
        """The memory, with all that the store holds now."""
        version = self._store.written_elsewhere()
        if self._memory is not None and self._may_write:
            self._memory.catch_up()
            self._memory.live.follow()
        elif self._memory is None or version != self._version:
            self.close()
            opened = Memory.open if self._may_write else Memory.open_copy
            self._memory, self._version = opened(self._system, self._path), version
        return self._memory

    def close(self) -> None:
        """Close what is open; where something may be written, the vectors are kept beside the store."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()


@dataclass(frozen=True, slots=True)
class AgentTools:
    """Everything that an agent may ask of one store, as whom its host says it is.

    Laws: what the asker may not read is neither told nor named; within a grant there is nothing but what reads through
    it; what is asked wrongly is refused in one line, and the next call is answered as if it had not been.
    """

    recall: Recall
    reader: Reader
    memory: OpenedMemory
    asker: Identity
    clock: Clock

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that there are."""
        return tuple(name for name, tool in TOOLS.items() if tool.is_of_grants or self.reader.grant is None)

    def call(self, name: str, asked: Mapping[str, Any]) -> str:
        """Call a tool.

        Raises:
            LcmError: if there is no such tool, an argument is not as its schema says, or the answer is a refusal.
            ValueError: if arguments contradict each other.
        """
        if name not in self.names:
            lent = " within this grant" if name in TOOLS else ""
            raise LcmError(f"there is no tool {_short(repr(name))}{lent}; choose one of: {', '.join(self.names)}")
        problems = sorted(_VALIDATORS[name].iter_errors(dict(asked)), key=lambda one: one.json_path)
        if problems:
            told = [f"{one.json_path}: {_short(one.message)}" for one in problems[:_MOST_PROBLEMS]]
            raise LcmError(f"{name}: {'; '.join(told)}")
        answer: Callable[[Mapping[str, Any]], str] = {
            "search": self._search,
            "grep": self._grep,
            "describe": self._describe,
            "expand": self._expand,
            "expand_query": self._expand_query,
            "context": self._context,
        }[name]
        return answer(asked)

    def _search(self, asked: Mapping[str, Any]) -> str:
        memory = self.memory.current()
        query = Query("search", asked["query"], self.clock(), scopes=self.asker.scopes)
        found = memory.recalled(memory.recall([query])).get(query.query_id, ())
        mine = [one for one in found if one.kind != DREAM or is_dream_of(one.document_id, self.asker.user_id)]
        told = [
            f"{rank}. [{one.document_id}] ({one.kind}, {minute(one.created_at)}, score {one.score:.3f}; "
            f"of {', '.join(one.source_message_ids) or 'no message'})\n{one.text_with_related}"
            for rank, one in enumerate(mine[: asked.get("limit", _HITS)], start=1)
        ]
        return self._cut("\n\n".join(told) or "Nothing was found.")

    def _grep(self, asked: Mapping[str, Any]) -> str:
        found = self.reader.grep(
            asked["pattern"].strip(),
            mode=asked.get("mode", "full_text"),
            scope=asked.get("scope", "both"),
            conversation=self.reader.conversation(asked.get("conversation")),
            since=_instant(asked, "since"),
            before=_instant(asked, "before"),
            limit=asked.get("limit"),
        )
        if found.is_refused:
            raise LcmError("; ".join(found.notes))
        return grep_text(found, self.recall.max_result_chars)

    def _describe(self, asked: Mapping[str, Any]) -> str:
        content = asked.get("content", False)
        described = self.reader.describe(
            asked["id"].strip(),
            conversation=self.reader.conversation(asked.get("conversation")),
            token_cap=asked.get("token_cap"),
            content=content,
        )
        return self._cut(described_text(described, is_bare=content))

    def _expand(self, asked: Mapping[str, Any]) -> str:
        found = self.reader.expand(
            [one.strip() for one in asked["ids"]],
            depth=asked.get("depth"),
            token_cap=min(asked.get("token_cap", self.recall.max_expand_tokens), self.recall.max_expand_tokens),
            has_messages=asked.get("messages", True),
            conversation=self.reader.conversation(asked.get("conversation")),
        )
        return distilled_text(found, self.recall.rules)

    def _expand_query(self, asked: Mapping[str, Any]) -> str:
        return self.recall.expand_query(
            self.reader,
            asked["prompt"],
            self.clock,
            summary_ids=[one.strip() for one in asked.get("ids", ())],
            query=asked.get("query", ""),
            conversation=self.reader.conversation(asked.get("conversation")),
            max_tokens=asked.get("max_tokens"),
            token_cap=min(asked.get("token_cap", self.recall.max_expand_tokens), self.recall.max_expand_tokens),
        ).text

    def _context(self, asked: Mapping[str, Any]) -> str:
        name = self._conversation_id(asked)
        memory = self.memory.current()
        at = max(self.clock(), memory.store.last_said(name))  # a recorded clock may have gone ahead of this one
        query = Query("context", asked.get("query", ""), at, conversation_id=name, scopes=self.asker.scopes)
        budget = asked.get("budget_tokens", _BUDGET_TOKENS)
        shown = memory.context(query, budget)
        told = [f"[{item.kind} {item.item_id}]\n{item.text}" for item in shown.items]
        head = f"## Context of {name}: {shown.tokens:,} of {budget:,} tokens, {shown.evicted} items are not shown"
        return "\n\n".join([head, *([shown.system_note] if shown.system_note else []), *told])

    def _conversation_id(self, asked: Mapping[str, Any]) -> str:
        """The id of the conversation that is named.

        Raises:
            StoreError: if there is none that the asker may read.
        """
        named = self.reader.conversation(asked.get("conversation"))
        with self.reader.store.reading() as connection:
            names = conversation_names(connection)
        known = names.get(named) if isinstance(named, int) else named if named in names.values() else None
        if known is None or not self.asker.reads_conversation(known):
            raise StoreError(f"there is no conversation {named!r} in the store")
        return known

    def _cut(self, text: str) -> str:
        most = self.recall.max_result_chars
        if utf16_length(text) <= most:
            return text
        return f"{first_units(text, most, 'replaced')}\n(cut at {most:,} characters: ask for less to see the rest)"


def _instant(asked: Mapping[str, Any], name: str) -> datetime | None:
    value = asked.get(name)
    try:
        return None if value is None else parse_instant(value)
    except ValueError as error:
        raise LcmError(f"{name} must be an ISO 8601 date or instant, got {_short(repr(value))}") from error


def _short(text: str) -> str:
    """What a refusal repeats of a request."""
    return text if len(text) <= 2 * _TOLD else f"{text[:_TOLD]}...{text[-_TOLD:]}"
