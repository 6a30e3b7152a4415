"""Where to begin to read for a question: summaries that were named or found, and messages that were found.

Source: lossless-claw 0.6.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lcm.context.recall.reader import Reader
from lcm.errors import StoreError
from lcm.records.rules import LosslessRules
from lcm.store.lineage import deepest, leaves_of

_SHALLOW = 1


@dataclass(frozen=True, slots=True)
class RecallCandidates:
    """What was named or found, of one conversation."""

    summary_ids: tuple[str, ...] = ()
    messages: tuple[int, ...] = ()
    """Integer keys of messages that were found: to be read before anything is expanded."""
    needs_messages: bool = False
    """Found by what the messages say: the summaries themselves do not."""
    conversations: tuple[int, ...] = ()
    """Integer keys: of the one conversation, and of archived ones of its id; empty where nothing was found."""


def candidates(
    reader: Reader,
    item_ids: Sequence[str],
    query: str,
    conversation: str | int | None,
    rules: LosslessRules,
) -> RecallCandidates:
    """Gather where to begin.

    Args:
        reader: what may be read.
        item_ids: of summaries and messages, named by the asker; a large file stands for its message.
        query: words to search summaries for, and, where none holds them, messages.
        conversation: where; None = anywhere.
        rules: `corrected` searches messages whenever no summary was found, and hands them on; `original` only where
            summaries are at most of depth 1, and keeps no more than the leaves above them.

    Raises:
        StoreError: if an id is unknown, or several conversations come into question.
    """
    items = reader.items(item_ids, conversation=conversation)
    rows = reader.bounds(conversation).conversations
    with reader.store.reading() as connection:
        depth = deepest(connection, rows)
    found: list[str] = []
    conversations: list[int] = []
    messages: list[int] = []
    for item in items:
        number = item.file.message if item.file else item.number
        if number is None:
            raise StoreError(f"the store does not hold the message of {item.item_id!r}; grep finds ids")
        conversations.append(item.conversation)
        if item.kind == "summary":
            found.append(item.item_id)
        else:
            messages.append(number)
    needs_messages = bool(messages)
    if query:
        hits = reader.grep(query, mode="full_text", scope="summaries", conversation=conversation).summaries
        found += [hit.summary_id for hit in hits]
        conversations += [hit.conversation for hit in hits]
        if not hits and (rules == "corrected" or depth <= _SHALLOW):
            said = reader.grep(query, mode="full_text", scope="messages", conversation=conversation).messages
            with reader.store.reading() as connection:
                leaves = leaves_of(connection, [hit.number for hit in said])
            kept = said if rules == "corrected" else [hit for hit in said if hit.number in leaves]
            found += [leaves[hit.number] for hit in kept if hit.number in leaves]
            messages += [hit.number for hit in kept] if rules == "corrected" else []
            conversations += [hit.conversation for hit in kept]
            needs_messages = needs_messages or bool(said)
    distinct = tuple(sorted(set(conversations)))
    if len(distinct) > 1 and not isinstance(conversation, str):
        raise StoreError(
            f"what was found lies in {len(distinct)} conversations ({', '.join(map(str, distinct))}); name one of them"
        )
    return RecallCandidates(tuple(dict.fromkeys(found)), tuple(dict.fromkeys(messages)), needs_messages, distinct)
