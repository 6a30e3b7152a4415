"""The words that a page shows: messages and documents, numbered, in blocks that are unpacked on demand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from eval.dataset.dataset import Dataset
from eval.report.insight import StoredDocument
from eval.report.packing import Blocks, parted
from lcm.records.conversation import Message
from lcm.redaction import redacted
from lcm.transcript.passages import utterance

_PART_LETTERS = 60_000
"""Of a block: unpacked in a few milliseconds."""
_PREVIEW = 160
_LIMITS = (20_000, 8_000, 4_000, 2_000, 1_000, 500, 250)
_BYTES_A_LETTER = 0.5
"""In the page: of English a third of a letter, of other scripts more."""


@dataclass(slots=True)
class Texts:
    """Numbers messages and documents as they are named, and packs their words."""

    dataset: Dataset | None
    """Where the words stand; None = they are not at hand, and the page shows ids."""
    most_bytes: int
    """What all words may take in the page: beyond it long messages are cut, the longest first."""
    documents: dict[tuple[str, str, str | None, str | None], int] = field(default_factory=dict)
    """(workspace, document, its own words, its own date) -> its number: memories may hold one otherwise."""
    rows: list[tuple[str, int | None, list[int], str | None, str | None]] = field(default_factory=list)
    """Of each document: its id, tokens, numbers of its messages, own words, own date."""
    messages: dict[tuple[str, str], int] = field(default_factory=dict)
    """(workspace, message) -> its number, which follows the conversation."""
    _said: list[tuple[str, Message | None, int]] = field(default_factory=list)
    """Message id, message, number of its conversation."""
    conversations: list[tuple[str, str, int, int]] = field(default_factory=list)
    """Conversation id, workspace, number of its first message, how many."""

    def __post_init__(self) -> None:
        for transcript in () if self.dataset is None else self.dataset.transcripts:
            workspace, number = transcript.workspace_id, len(self.conversations)
            first = len(self._said)
            for message in transcript.messages:
                if self.messages.setdefault((workspace, message.message_id), len(self._said)) == len(self._said):
                    self._said.append((message.message_id, message, number))
            self.conversations.append((transcript.conversation_id, workspace, first, len(self._said) - first))

    def message(self, workspace: str, message_id: str) -> int:
        """The number of a message; one that the dataset does not tell gets one without words."""
        number = self.messages.setdefault((workspace, message_id), len(self._said))
        if number == len(self._said):
            self._said.append((message_id, None, -1))
        return number

    def document(
        self,
        workspace: str,
        document_id: str,
        sources: Sequence[str],
        tokens: int | None,
        stored: StoredDocument | None = None,
    ) -> int:
        """The number of a document; its words and its date are those of the messages it was made of, unless it is
        `stored` with others."""
        made_of = [self.message(workspace, source) for source in sources]
        text, at = self.other(stored, made_of)
        number = self.documents.setdefault((workspace, document_id, text, at), len(self.rows))
        if number == len(self.rows):
            self.rows.append((document_id, tokens, made_of, text, at))
        return number

    def other(self, stored: StoredDocument | None, made_of: Sequence[int]) -> tuple[str | None, str | None]:
        """The words and the date of a stored document, each where it is not that of the messages it was made of."""
        if stored is None:
            return None, None
        return stored.text if self._is_other(stored.text, made_of) else None, self._other_date(stored.at, made_of)

    def _other_date(self, at: datetime, made_of: Sequence[int]) -> str | None:
        """When a document is said to be from, where none of its messages is."""
        said = [message.created_at for number in made_of if (message := self._said[number][1]) is not None]
        told = {_minute(instant) for instant in said if instant is not None}
        return _minute(at) if told and _minute(at) not in told else None

    def _is_other(self, text: str, made_of: Sequence[int]) -> bool:
        """Whether a text is not simply what its one message says, with the speaker's name before it."""
        if len(made_of) != 1 or (message := self._said[made_of[0]][1]) is None:
            return True
        said = utterance(message).strip()
        return not said or not text.strip().endswith(said)

    def pack(self, blocks: Blocks, needed: Iterable[int] | None = None) -> dict[str, list[int]]:
        """Write the blocks; returns where those of messages and of documents begin.

        Args:
            needed: the messages whose words are shown; None = of all.
        """
        wanted = None if needed is None else set(needed).union(*(row[2] for row in self.rows))
        words = [
            "" if message is None or (wanted is not None and number not in wanted) else redacted(utterance(message))
            for number, (_, message, _) in enumerate(self._said)
        ]
        limit = _limit([len(text) for text in words], self.most_bytes)
        rows = [
            self._message(number, words[number], limit, is_told=wanted is None or number in wanted)
            for number in range(len(self._said))
        ]
        documents = [
            (
                document_id,
                tokens,
                made_of,
                None if text is None else _cut(redacted(text), limit),
                _first(words, made_of),
                at,
            )
            for document_id, tokens, made_of, text, at in self.rows
        ]
        return {
            "messages": blocks.add_series("m", parted(rows, [len(row[-1] or "") + 40 for row in rows], _PART_LETTERS)),
            "documents": blocks.add_series(
                "d", parted(documents, [len(row[3] or row[4] or "") + 40 for row in documents], _PART_LETTERS)
            ),
        }

    def _message(self, number: int, words: str, limit: int, *, is_told: bool) -> tuple[str, str, str, int, str | None]:
        """Id, who, when, number of the conversation, words."""
        message_id, message, conversation = self._said[number]
        if message is None:
            return message_id, "", "", conversation, None
        at = "" if message.created_at is None else _minute(message.created_at)
        return message_id, message.author or message.role, at, conversation, _cut(words, limit) if is_told else None


def _minute(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M}"


def _first(words: Sequence[str], made_of: Sequence[int]) -> str | None:
    """How a document begins, by its first message: what a list of documents shows without unpacking messages."""
    return words[made_of[0]][:_PREVIEW] or None if made_of else None


def _limit(lengths: Sequence[int], most_bytes: int) -> int:
    """The letters that a message may have so that all of them fit."""
    for limit in _LIMITS:
        if sum(min(length, limit) for length in lengths) * _BYTES_A_LETTER <= most_bytes:
            return limit
    return _LIMITS[-1]


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit:,} characters more)"
