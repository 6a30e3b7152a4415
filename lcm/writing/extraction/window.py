"""One document a message together with what was said just before it."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from lcm.checks import check_range
from lcm.protocols.writing import Annotation
from lcm.records.conversation import Message, Role
from lcm.records.document import Candidate
from lcm.transcript.passages import SAID, PassageKind
from lcm.writing.annotation.none import NoAnnotation
from lcm.writing.extraction.wording import check_passages, check_roles, said_at, words_of


@dataclass(frozen=True, slots=True)
class Window:
    """A window that slides over each session: every message with words ends one document of up to `size` messages.

    Messages of other roles and those without words are passed over and not counted. Extracting a conversation piece
    by piece gives the same documents as all at once.
    """

    size: int = 3
    """Messages a document at most; 1 = each message alone."""
    roles: Sequence[Role] = ("user", "assistant", "tool")
    author_prefix: bool = True
    """Begin each message with `Author: ` where the transcript names one."""
    passages: Sequence[PassageKind] = SAID
    """What of each message the document says: its words, calls of tools with their arguments, results that the words
    leave out, reasoning, files, others."""
    annotation: Annotation = field(default_factory=NoAnnotation)
    """Category, importance, temporal type and expiry, by all words of the window, as said with its last message; a
    message of an unknown time counts as said at EPOCH."""

    def __post_init__(self) -> None:
        check_range(self, "size", ge=1)
        check_roles(self.roles)
        check_passages(self.passages)

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        candidates, instants = [], []
        recent: dict[str, deque[tuple[str, str]]] = {}
        for position, message in enumerate(messages):
            words = words_of(message, author_prefix=self.author_prefix, kinds=self.passages)
            if message.role not in self.roles or not words:
                continue
            window = recent.setdefault(message.session_id, deque(maxlen=self.size))
            window.append((message.message_id, words))
            if position >= known:
                ids, texts = zip(*window, strict=True)
                candidates.append(Candidate("\n".join(texts), source_message_ids=ids, kind="window"))
                instants.append(said_at(message))
        return self.annotation.annotate(candidates, instants)
