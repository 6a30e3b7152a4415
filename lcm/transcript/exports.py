"""What ChatGPT and Claude.ai export: an array of conversations (`conversations.json` or its shards), one a line, or one
alone.

Both have what was said as a tree. The branch that the page shows is the conversation, and each other one is a
conversation of its own. What stands beside the messages is an event of type `session`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lcm.encoding import to_json, well_formed
from lcm.errors import TranscriptError
from lcm.records.conversation import Event, Message, Part, Role
from lcm.transcript.branches import behind_parents, doubts, suffixes
from lcm.transcript.fields import as_object, id_in, list_in, listed, native_id, object_in, recorded_instant, text_in
from lcm.transcript.parts import DecomposedMessage, decompose, extended, plain_text, undivided, value_part
from lcm.transcript.reader import ConversationIds, RecordedItem, Session, sessions
from lcm.transcript.recorded_file import RecordedFile

_MESSAGES = "chat_messages"
_ROOT = "00000000-0000-4000-8000-000000000000"
"""Named as the parent of what begins a conversation."""


@dataclass(frozen=True, slots=True)
class ClaudeAiReader:
    """Reads the branch that `current_leaf_message_uuid`, else the last message, ends as the conversation.

    Each of the `chat_messages` names the one before it by `parent_message_uuid`. An element of another list is an event
    named by the list. What was read of an attachment are words of the message that brings it.
    """

    name = "claude_ai"

    def detects(self, file: RecordedFile) -> bool:
        return any(map(_is_of_claude, file.heads))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for survey, session in zip(sessions(RecordedFile(file.path)), sessions(file), strict=True):
            yield from _tree(survey, session, ids.name(id_in(session.header, "uuid") or file.name), file)


def _tree(survey: Session, session: Session, name: str, file: RecordedFile) -> Iterator[RecordedItem]:
    parents = _parents(element.value for element in survey.elements if element.key == _MESSAGES)
    branches = suffixes(parents, text_in(session.header, "current_leaf_message_uuid"))
    title = text_in(session.header, "name") or None
    yield from session.items(file, name, {_MESSAGES: _said}, title, lambda message: branches[message.message_id])
    file.doubts += doubts(parents, f"{file.path}: conversation {name}")


def _parents(messages: Iterable[object]) -> dict[str, str | None]:
    """The id of each message to that of the one which it answers: the one before it in exports that name none."""
    parents: dict[str, str | None] = {}
    before: str | None = None
    for native in messages:
        named = text_in(native, "parent_message_uuid")
        parents.setdefault(id_in(native, "uuid"), before if named is None else None if named == _ROOT else named)
        before = id_in(native, "uuid") or None
    return parents


def _said(native: Any, session_id: str) -> Message:
    if not isinstance(native, dict) or not isinstance(native.get("sender"), str):
        raise TranscriptError("expected a message, an object with a `sender`")
    said = decompose(native, "user" if native["sender"] == "human" else native["sender"])
    beside = tuple(_beside(native, said.content))
    said = extended(said, beside, (part.text for part in beside))
    return said.message(id_in(native, "uuid"), session_id, recorded_instant(native, "created_at", "updated_at"))


def _beside(native: dict[str, Any], words: str) -> Iterator[Part]:
    """What is said beside the blocks: the `text` of an export that has none, what was read of attachments, files."""
    if not words and isinstance(native.get("text"), str):
        yield value_part("text", native["text"])
    for slot in ("attachments", "files"):
        for file in list_in(native, slot):
            yield Part("file", text_in(file, "extracted_content"), metadata={"slot": slot, "raw": file})


def _is_of_claude(value: object) -> bool:
    messages = value.get(_MESSAGES) if isinstance(value, dict) else None
    return isinstance(messages, list) and all(isinstance(said, dict) and "sender" in said for said in messages[:1])


_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool", "system": "system"}
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
"""What the user, or the model for the user, wrote down for all conversations."""
_THOUGHTS = ("thoughts", "reasoning_recap")
_WORD_KEYS = ("text", "result", "content", "user_profile", "user_instructions", "model_set_context")
"""Where the words of a content stand that has no `parts`."""


@dataclass(frozen=True, slots=True)
class ChatGptReader:
    """Reads the branch that `current_node` ends as the conversation.

    The `mapping` of a conversation is a tree of nodes, each with a message or without. A message that calls a tool
    names it as its `recipient`; the tool's answers hang below it. The event of type `session` has the `children` of the
    nodes in place of the `mapping`: they grow as the talk goes on, and what is said does not. A node without a message
    is an event of type `node`; a system message that the page hides one of type `hidden`, unless it holds the user's
    own instructions.
    """

    name = "chatgpt"

    def detects(self, file: RecordedFile) -> bool:
        return any(map(_is_of_chatgpt, file.heads))

    def read(self, file: RecordedFile) -> Iterator[RecordedItem]:
        ids = ConversationIds()
        for line, value in file.values():
            with file.record(line):
                conversation = as_object(value, "a conversation")
                if not isinstance(conversation.get("mapping"), dict):
                    raise TranscriptError("expected a conversation, an object with a `mapping` of nodes")
                name = ids.name(id_in(conversation, "conversation_id", "id") or file.name)
                yield from _nodes(conversation, name, file, line)


def _nodes(conversation: dict[str, Any], name: str, file: RecordedFile, line: int) -> Iterator[RecordedItem]:
    mapping, title = object_in(conversation, "mapping"), text_in(conversation, "title")
    children = {key: node["children"] for key, node in mapping.items() if isinstance(node, dict) and "children" in node}
    yield RecordedItem(name, Event("session", conversation | {"mapping": children}), title)
    parents = {key: _parent(node) for key, node in mapping.items()}
    order = behind_parents(parents)
    branches = suffixes({key: parents[key] for key in order}, text_in(conversation, "current_node"))
    calls: dict[str, str] = {}
    for key in order:
        with file.record(line, f"mapping {key}: "):
            node = {name: value for name, value in as_object(mapping[key], "a node").items() if name != "children"}
            said = _node(node, key, calls)
            item = Event("node", node) if said is None else _message(said, node, key, name)
            yield RecordedItem(name + well_formed(branches[key]), item, title)
    file.doubts += doubts(parents, f"{file.path}: conversation {name}")


def _parent(node: object) -> str | None:
    parent = node.get("parent") if isinstance(node, dict) else None
    return parent if isinstance(parent, str) else None


def _message(said: DecomposedMessage, node: dict[str, Any], key: str, session_id: str) -> Message:
    native = node["message"]
    instant = recorded_instant(native, "create_time", "update_time")
    return said.message(id_in(native, "id") or native_id(key), session_id, instant)


def _node(node: dict[str, Any], key: str, calls: dict[str, str]) -> DecomposedMessage | None:
    """What is said in a node; `calls` is given, and gains, the call below which each node of a tool stands."""
    if node.get("message") is None:
        return None
    native = as_object(node["message"], "the `message` of a node")
    author, content = object_in(native, "author"), object_in(native, "content")
    if not isinstance(author.get("role"), str):
        raise TranscriptError("the `message` of a node needs an `author` with a `role`")
    is_instruction = content.get("content_type") in _INSTRUCTIONS
    role = "system" if is_instruction else _ROLES.get(author["role"], "assistant")
    parts = list(_parts(content))
    words = "\n".join(part.text for part in parts if part.text and part.part_type == "text")
    is_hidden = object_in(native, "metadata").get("is_visually_hidden_from_conversation") is True
    if role == "system" and (not words or (is_hidden and not is_instruction)):
        return None
    if role == "assistant" and native.get("recipient") not in (None, "all"):
        calls[key] = id_in(native, "id") or native_id(key)
        # What the model wrote to a tool: JSON as it stands, a program as a JSON text.
        given = words if words[:1] in ("{", "[") and _is_json(words) else to_json(words)
        call = Part("tool", tool_call_id=calls[key], tool_name=text_in(native, "recipient"), tool_input=given)
        return undivided(node, role, [call])
    if role == "tool" and (call_id := calls.get(_parent(node) or "")):
        calls[key] = call_id
        parts = [replace(part, tool_call_id=call_id, tool_name=text_in(author, "name")) for part in parts]
    return undivided(node, role, parts, words)


def _parts(content: Mapping[str, Any]) -> Iterator[Part]:
    if content.get("content_type") in _THOUGHTS:
        for thought in listed(content.get("thoughts", content.get("content"))):
            held = thought if isinstance(thought, dict) else {"content": thought}
            told = filter(None, (text_in(held, key) for key in ("summary", "content")))
            yield Part("reasoning", "\n".join(told) or None)
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
    words = text_in(block, "text")
    is_file = isinstance(block, dict) and any("asset_pointer" in key for key in block)
    return Part("file" if is_file else "agent" if words is None else "text", words)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (RecursionError, ValueError):
        return False
    return True


def _is_of_chatgpt(value: object) -> bool:
    """Say whether this is a tree of messages, each with its author: the first nodes may be without one."""
    nodes = list(object_in(value, "mapping").values())[:3]
    return bool(nodes) and all(map(_is_node, nodes))


def _is_node(value: object) -> bool:
    if not isinstance(value, dict) or "parent" not in value or "message" not in value:
        return False
    return value["message"] is None or "author" in object_in(value, "message")
