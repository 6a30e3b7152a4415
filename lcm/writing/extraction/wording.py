"""What a message says in words, as every extraction writes it down."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from lcm.clock import EPOCH
from lcm.records.conversation import ROLES, Message, Role


def check_roles(roles: Sequence[Role]) -> None:
    """Raises: ValueError: if none is named, or one that there is not."""
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {list(roles)!r}")


def words_of(message: Message, *, author_prefix: bool, tool_calls: bool) -> str:
    """The message's words; empty where it has none.

    Args:
        message: what was said.
        author_prefix: begin with `Author: ` where the transcript names one.
        tool_calls: end with a line for each tool call: its name and its arguments as JSON.
    """
    words = "\n".join(_lines(message, tool_calls))
    return f"{message.author}: {words}" if words and author_prefix and message.author else words


def said_at(message: Message) -> datetime:
    """When a message was said; EPOCH where nothing says, as the store dates it."""
    return message.created_at or EPOCH


def _lines(message: Message, tool_calls: bool) -> Iterator[str]:
    if message.content.strip():
        yield message.content
    if tool_calls:
        for part in message.parts:
            if part.part_type == "tool" and part.tool_input is not None:
                yield f"{part.tool_name or 'tool'} {part.tool_input}"
