"""What a message says in words, as every extraction writes it down."""

from collections.abc import Sequence
from datetime import datetime

from lcm.clock import EPOCH
from lcm.records.conversation import ROLES, Message, Role
from lcm.transcript.passages import PASSAGE_KINDS, PassageKind, text_of


def check_roles(roles: Sequence[Role]) -> None:
    """Raises: ValueError: if none is named, or one that there is not."""
    unknown = sorted(set(roles) - set(ROLES))
    if unknown or not roles:
        raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {list(roles)!r}")


def check_passages(kinds: Sequence[PassageKind]) -> None:
    """Raises: ValueError: if none is named, or one that there is not."""
    unknown = sorted(set(kinds) - set(PASSAGE_KINDS))
    if unknown or not kinds:
        raise ValueError(f"passages must be some of {', '.join(PASSAGE_KINDS)}, got {list(kinds)!r}")


def words_of(message: Message, *, author_prefix: bool, kinds: Sequence[PassageKind]) -> str:
    """What the message says; empty where it says nothing of these kinds.

    Args:
        message: what was said.
        author_prefix: begin with `Author: ` where the transcript names one.
        kinds: its words, the calls of tools, ...
    """
    words = text_of(message, kinds)
    return f"{message.author}: {words}" if words and author_prefix and message.author else words


def said_at(message: Message) -> datetime:
    """When a message was said; EPOCH where nothing says, as the store dates it."""
    return message.created_at or EPOCH
