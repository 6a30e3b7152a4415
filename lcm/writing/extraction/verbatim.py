"""One document a message, in its own words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from lcm.protocols.writing import Annotation
from lcm.records.conversation import Message, Role
from lcm.records.document import Candidate
from lcm.transcript.passages import SAID, PassageKind
from lcm.writing.annotation.none import NoAnnotation
from lcm.writing.extraction.wording import check_passages, check_roles, said_at, words_of


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Every message of the named roles that has words becomes one document."""

    roles: Sequence[Role] = ("user", "assistant", "tool")
    author_prefix: bool = True
    """Begin the text with `Author: ` where the transcript names one."""
    passages: Sequence[PassageKind] = SAID
    """What of a message its document says: its words, calls of tools with their arguments, results that the words leave
    out, reasoning, files, others."""
    annotation: Annotation = field(default_factory=NoAnnotation)
    """Category, importance, temporal type and expiry; a message of an unknown time counts as said at EPOCH."""

    def __post_init__(self) -> None:
        check_roles(self.roles)
        check_passages(self.passages)

    def extract(self, messages: Sequence[Message], known: int = 0, *, incidents: Counter[str]) -> list[Candidate]:
        candidates, instants = [], []
        for message in messages[known:]:
            words = words_of(message, author_prefix=self.author_prefix, kinds=self.passages)
            if message.role in self.roles and words:
                candidates.append(Candidate(words, source_message_ids=(message.message_id,)))
                instants.append(said_at(message))
        return self.annotation.annotate(candidates, instants)
