"""What lossless-claw 0.6.3 would store of a recorded message: its words, and what its tokens are counted from."""

from typing import Any

from lcm.encoding import well_formed
from lcm.javascript import stringify, trim
from lcm.records.conversation import Message
from lcm.transcript.rendering.agent_form import AgentMessage, agent_messages
from lcm.transcript.rendering.blocks import block_of, needs_no_row
from lcm.transcript.rendering.stored_parts import stored_parts
from lcm.transcript.rendering.stored_text import stored_text


def stored_content(message: Message) -> str:
    """Give the words of the message: what compaction reads and recall searches."""
    if message.files or "native" not in message.envelope:
        return message.content
    said = [stored_text(native) for native in agent_messages(message)]
    return well_formed(said[0] if len(said) == 1 else "\n".join(text for text in said if trim(text)))


def rendered(message: Message) -> str:
    """Give the text whose tokens the message counts: what a context would show of it."""
    return "\n".join(_rendered(native, message.message_id) for native in agent_messages(message))


def _rendered(native: AgentMessage, message_id: str) -> str:
    if "content" not in native:
        return stored_text(native)
    blocks = blocks_of(native, message_id)
    if not blocks:
        return stored_text(native)
    if native["role"] in ("user", "system") and (alone := only_text(blocks)) is not None:
        return alone
    return stringify(blocks)


def blocks_of(native: AgentMessage, message_id: str) -> list[Any]:
    """The blocks of an agent message, once its rows have been stored and read again."""
    content = native.get("content")
    if isinstance(content, list) and all(map(needs_no_row, content)):
        return content
    if isinstance(content, str):  # as its one row would be read again, sooner
        return [{"type": "text", "text": content}]
    return [block_of(part, f"{message_id}_{place}") for place, part in enumerate(stored_parts(native))]


def only_text(blocks: list[Any]) -> str | None:
    """The text of a message that is one block of text; None for any other."""
    block = blocks[0] if len(blocks) == 1 else None
    is_text = isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    return block["text"] if is_text and isinstance(block, dict) else None
