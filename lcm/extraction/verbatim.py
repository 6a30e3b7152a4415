"""One document a message, in its own words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lcm.records import ROLES, Candidate, Message, Role


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Every message of the named roles that has words becomes one document."""

    roles: Sequence[Role] = ("user", "assistant", "tool")
    author_prefix: bool = True
    """Begin the text with `Author: ` where the transcript names one."""
    tool_calls: bool = True
    """End the text with a line for each tool call: its name and its arguments as JSON."""

    def __post_init__(self) -> None:
        unknown = sorted(set(self.roles) - set(ROLES))
        if unknown or not self.roles:
            raise ValueError(f"roles must be some of {', '.join(ROLES)}, got {list(self.roles)!r}")

    def extract(self, messages: Sequence[Message], known: int = 0) -> list[Candidate]:
        candidates = []
        for message in messages[known:]:
            words = "\n".join(self._lines(message))
            if message.role in self.roles and words:
                prefix = f"{message.author}: " if self.author_prefix and message.author else ""
                candidates.append(Candidate(prefix + words, source_message_ids=(message.message_id,)))
        return candidates

    def _lines(self, message: Message) -> Iterator[str]:
        if message.content.strip():
            yield message.content
        if self.tool_calls:
            for part in message.parts:
                if part.part_type == "tool" and part.tool_input is not None:
                    yield f"{part.tool_name or 'tool'} {part.tool_input}"
