"""The contexts of an external memory in one workspace, as an assembly that gives them again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lcm.protocols.context import ContextRequest
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.summary import Summary


@dataclass(frozen=True, slots=True)
class RecordedContexts:
    """An `Assembly` that has the contexts which were asked for, and lacks all others."""

    contexts: Mapping[tuple[str, datetime | None, int], Context] = field(default_factory=dict)
    """By the words of the query, when it was asked, and the budget."""

    reads_prompts = True
    shows_documents = True

    def rendered(self, message: Message) -> str:
        return message.content

    def lacks(self, ask: ContextRequest) -> bool:
        return _key(ask) not in self.contexts

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        return [self.contexts[key] for ask in asks if (key := _key(ask)) in self.contexts]


def _key(ask: ContextRequest) -> tuple[str, datetime | None, int]:
    return ask.prompt, ask.asked_at, ask.budget_tokens
