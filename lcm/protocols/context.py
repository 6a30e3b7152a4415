"""What a model is shown: assembly and authored documents."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, runtime_checkable

from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.query import Recalled
from lcm.records.summary import Summary


class Mention(NamedTuple):
    """A message that mentions a name."""

    message_id: str
    text: str


class ContextRequest(NamedTuple):
    """One request for a context: its prompt, what was recalled for it, and its budget."""

    budget_tokens: int
    prompt: str = ""
    """What the context should help with; empty: nothing is known of it."""
    recalled: Sequence[Recalled] = ()
    """What ranking found for the prompt, best first."""
    asked_at: datetime | None = None
    """When; None = as of the last item of the conversation."""
    mentions: Mapping[str, Sequence[Mention]] = {}
    """Where the assembly looks names up: by name what users and assistants said of it in the conversation, newest
    first."""


class Assembly(Protocol):
    """Packs contexts.

    Laws: the fresh tail is always in, unless the whole is clamped; the rest is never over budget; hard authored text is
    never cut; a tool's result stands behind a message that calls it; one context an ask, each as if asked alone; of
    every item, and of what was recalled where documents are shown, it stands in the context or in what that leaves out.
    """

    @property
    def shows_documents(self) -> bool:
        """Whether contexts hold what was recalled and authored, beside the conversation."""
        ...

    @property
    def reads_prompts(self) -> bool:
        """Whether a context depends on the prompt of its ask."""
        ...

    def rendered(self, message: Message) -> str:
        """The text whose tokens a message costs in a context."""
        ...

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        """Choose what fits from the context items of one conversation, in order, what each ask recalled, and what was
        authored, in authored order.

        Raises:
            LcmError: if what is authored and must be shown takes more than may be asked for.
        """
        ...


@runtime_checkable
class ShowsTail(Protocol):
    """An assembly that can tell what it shows whatever is recalled, so that no search need find it."""

    def tail_message_ids(
        self,
        items: Sequence[Message | Summary],
        budget_tokens: int,
        authored: Sequence[AuthoredNode] = (),
        prompt: str = "",
    ) -> list[str]:
        """The messages that a context shows word for word."""
        ...


@runtime_checkable
class LooksUp(Protocol):
    """An assembly that quotes what a conversation said of names that its context lacks."""

    def names(self, prompt: str) -> list[str]:
        """The names of a prompt whose mentions an ask should bring."""
        ...


@runtime_checkable
class MayLack(Protocol):
    """An assembly that cannot pack every context: one of recorded contexts."""

    def lacks(self, ask: ContextRequest) -> bool:
        """Whether there is none for an ask, so that it must not be asked for."""
        ...


class Authored(Protocol):
    """Documents that somebody wrote for the agent: what holds always, as far as it fits, or where it is found.

    Laws: node ids are unique; nodes come in authored order; equal files give equal nodes.
    """

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        """Read them.

        Raises:
            LcmError: if a file cannot be read.
        """
        ...
