"""ChatGPT exports: an array of conversations (`conversations.json` or its shards), one a line, or one alone.

The `mapping` of a conversation is a tree of nodes, each with a message or without; `current_node` ends the branch that
the page shows. A message that calls a tool names it as its `recipient`; the tool's answers hang below it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.branches import behind_parents, doubts, suffixes
from lcm.transcript.fields import as_object, listed, object_in, text_in
from lcm.transcript.identity import native_id, recorded_instant
from lcm.transcript.plain_text import plain_text
from lcm.transcript.reader import RecordedItem
from lcm.transcript.recorded_file import RecordedFile
from lcm.transcript.sessions import ConversationIds

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "system": "system"}
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
"""What the user, or the model for the user, wrote down for all conversations."""
_THOUGHTS = ("thoughts", "reasoning_recap")
_WORD_KEYS = ("text", "result", "content", "user_profile", "user_instructions", "model_set_context")
"""Where the words of a content stand that has no `parts`."""


@dataclass(frozen=True, slots=True)
class ChatGptReader:
    """Reads the branch that `current_node` ends as the conversation, and each other one as a conversation of its own.

    What stands beside the `mapping` is an event of type `session`, with the `children` of the nodes in its place: they
    grow as the talk goes on, and what is said does not. A node without a message is an event of type `node`; a system
    message that the page hides one of type `hidden`, unless it holds the user's own instructions.
    """

    name = "chatgpt"

    def detects(self, file: RecordedFile) -> bool:
        values = [file.first] if isinstance(file.first, dict) else file.first
        return any(map(_is_conversation, values))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for line, value in file.values():
            with file.record(line):
                conversation = as_object(value, "a conversation")
                if not isinstance(conversation.get("mapping"), dict):
                    raise TranscriptError("expected a conversation, an object with a `mapping` of nodes")
                named = native_id(conversation.get("conversation_id")) or native_id(conversation.get("id"))
                yield from _conversation(conversation, ids.name(named or file.name), file, line)


def _conversation(
    conversation: dict[str, Any], conversation_id: str, file: RecordedFile, line: int
) -> Iterator[RecordedItem]:
    mapping: dict[str, Any] = conversation["mapping"]
    title = text_in(conversation, "title")
    children = {key: node["children"] for key, node in mapping.items() if isinstance(node, dict) and "children" in node}
    yield RecordedItem(conversation_id, Event("session", conversation | {"mapping": children}), title)
    parents = {key: _parent(node) for key, node in mapping.items()}
    order = behind_parents(parents)
    branches = suffixes({key: parents[key] for key in order}, text_in(conversation, "current_node"))
    calls: dict[str, str] = {}
    for key in order:
        with file.record(line, f"mapping {key}: "):
            node = {name: value for name, value in as_object(mapping[key], "a node").items() if name != "children"}
            item = _item(node, key, conversation_id, calls)
            yield RecordedItem(conversation_id + well_formed(branches[key]), item, title)
    file.doubts += doubts(parents, f"{file.path}: conversation {conversation_id}")


def _parent(node: object) -> str | None:
    parent = node.get("parent") if isinstance(node, dict) else None
    return parent if isinstance(parent, str) else None


def _item(node: dict[str, Any], key: str, session_id: str, calls: dict[str, str]) -> Message | Event:
    """What a node holds; `calls` is given, and gains, the call below which each node of a tool stands."""
    if node.get("message") is None:
        return Event("node", node)
    native = as_object(node["message"], "the `message` of a node")
    author, content = object_in(native, "author"), object_in(native, "content")
    if not isinstance(author.get("role"), str):
        raise TranscriptError("the `message` of a node needs an `author` with a `role`")
    is_instruction = content.get("content_type") in _INSTRUCTIONS
    role = "system" if is_instruction else _ROLES.get(author["role"], "assistant")
    parts = tuple(_parts(content))
    words = "\n".join(part.text for part in parts if part.text and part.part_type == "text")
    is_hidden = object_in(native, "metadata").get("is_visually_hidden_from_conversation") is True
    if role == "system" and (not words or (is_hidden and not is_instruction)):
        return Event("node", node)
    message_id = native_id(native.get("id")) or native_id(key)
    if role == "assistant" and native.get("recipient") not in (None, "all"):
        calls[key] = message_id
        parts, words = (_call(native, words, message_id),), ""
    elif role == "tool" and (call_id := calls.get(_parent(node) or "")):
        calls[key] = call_id
        parts = tuple(replace(part, tool_call_id=call_id, tool_name=text_in(author, "name")) for part in parts)
    return Message(
        message_id=message_id,
        role=role,
        content=words,
        session_id=session_id,
        created_at=recorded_instant(native, ("create_time", "update_time")),
        parts=parts,
        envelope={"native": node, "slots": {}},
    )


def _parts(content: Mapping[str, Any]) -> Iterator[Part]:
    if content.get("content_type") in _THOUGHTS:
        yield from map(_thought, listed(content.get("thoughts", content.get("content"))))
    elif isinstance(content.get("parts"), list):
        yield from map(_part, content["parts"])
    elif texts := [content[key] for key in _WORD_KEYS if isinstance(content.get(key), str)]:
        yield from (Part("text", well_formed(text)) for text in texts if text)
    elif content:
        yield Part("text", plain_text({"content": [content]}))


def _part(block: object) -> Part:
    """A piece of what is said: words, what was heard, or the pointer to a file that the export holds apart."""
    if isinstance(block, str):
        return Part("text", well_formed(block))
    held = block if isinstance(block, dict) else {}
    words = text_in(held, "text")
    is_file = any("asset_pointer" in key for key in held)
    return Part("file" if is_file else "agent" if words is None else "text", words)


def _thought(thought: object) -> Part:
    held = thought if isinstance(thought, dict) else {"content": thought}
    return Part("reasoning", "\n".join(filter(None, (text_in(held, "summary"), text_in(held, "content")))) or None)


def _call(native: Mapping[str, Any], told: str, call_id: str) -> Part:
    """What the model wrote to a tool: JSON as it stands, a program as a JSON text."""
    return Part(
        "tool",
        tool_call_id=call_id,
        tool_name=text_in(native, "recipient"),
        tool_input=told if told[:1] in ("{", "[") and _is_json(told) else to_json(told),
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (RecursionError, ValueError):
        return False
    return True


def _is_conversation(value: object) -> bool:
    """Say whether this is a tree of messages, each with its author: the first nodes may be without one."""
    mapping = value.get("mapping") if isinstance(value, dict) else None
    nodes = list(mapping.values())[:3] if isinstance(mapping, dict) else []
    return bool(nodes) and all(map(_is_node, nodes))


def _is_node(value: object) -> bool:
    if not isinstance(value, dict) or "parent" not in value or "message" not in value:
        return False
    return value["message"] is None or "author" in object_in(value, "message")
