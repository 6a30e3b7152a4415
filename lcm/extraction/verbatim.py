"""One document a message, in its own words."""

from collections.abc import Sequence
from dataclasses import dataclass

from lcm.records import ROLES, Candidate, Message, Role


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Every message of the named roles that has words becomes one document."""

    roles: Sequence[Role] = ("user", "assistant", "tool")
    author_prefix: bool = True
    """Begin the text with `Author: ` where the transcript names one."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.roles) - set(ROLES))
        if unknown or not self.roles:
            raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {list(self.roles)!r}")

    def extract(self, messages: Sequence[Message]) -> list[Candidate]:
        return [
            Candidate(text=self._text(message), source_message_ids=(message.message_id,))
            for message in messages
            if message.role in self.roles and message.content.strip()
        ]

    def _text(self, message: Message) -> str:
        if self.author_prefix and message.author:
            return f"{message.author}: {message.content}"
        return message.content
