"""DOC"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, get_args

from jsonschema import Draft202012Validator

from lcm.clock import parse_instant
from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.grants import Clock
from lcm.context.recall.grep import Mode, Scope, grep_text, minute
from lcm.context.recall.reader import Reader, described_text
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError, StoreError
from lcm.javascript import first_units, utf16_length
from lcm.memory.memory import Memory
from lcm.memory.scopes import Identity
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.store.conversations import conversation_names
from lcm.store.store import Store
from lcm.writing.dream import DREAM, is_dream_of

ID_CHARACTERS = 1000
_MOST_IDS = 100
_MOST_HITS = 200
_MOST_STEPS = 100
_MOST_TOKENS = 1_000_000
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
