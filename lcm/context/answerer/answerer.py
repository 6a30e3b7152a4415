"""Who answers a question from what was compacted: the contract, and what passes through it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lcm.context.recall.describe import DescribedFile, DescribedMessage, DescribedSummary
from lcm.context.recall.expansion import ExpansionResult, ReachedMessage
from lcm.protocols.models import TokenEstimator


@dataclass(frozen=True, slots=True)
class Question:
    """A question for an answerer, with the summaries and messages to begin at."""

    prompt: str
    summary_ids: tuple[str, ...]
    """Where to begin: named by the asker, or found."""
    messages: tuple[int, ...] = ()
    """Integer keys of messages that are in no summary, and speak of it."""
    needs_messages: bool = False
    """The summaries were found by what their messages say."""
    max_tokens: int = 2000
    """Of the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answerer's text, with the summaries and messages that it cites."""

    text: str
    cited_ids: tuple[str, ...]
    """The summaries that it rests on."""
    cited_messages: tuple[int, ...] = ()
    """The messages that it rests on, by their integer keys."""
    expanded_summaries: int = 0
    """How many summaries were read for it."""
    source_tokens: int = 0
    """How many tokens were read for it."""
    is_truncated: bool = False
    """Not everything could be read, or the answer was cut."""


class GrantedReader(Protocol):
    """A reader that is confined to a grant; whatever it reads is taken off that."""

    @property
    def remaining_tokens(self) -> int:
        """Of the grant; 0 once it has ended."""
        ...

    @property
    def token_estimator(self) -> TokenEstimator: ...

    def describe(self, item_id: str) -> DescribedSummary | DescribedMessage | DescribedFile: ...

    def expand(
        self,
        item_ids: Sequence[str],
        *,
        depth: int | None = None,
        token_cap: int | None = None,
        has_messages: bool = False,
    ) -> ExpansionResult: ...

    def messages(self, numbers: Sequence[int]) -> list[ReachedMessage]: ...


class Answerer(Protocol):
    """Laws: reads through its reader alone; at most `max_tokens`; cites nothing that it was not shown."""

    def answer(self, question: Question, reader: GrantedReader) -> Answer:
        """Answer a question.

        Raises:
            LcmError: if there is no answer to be had: the grant has ended, or a model gives none.
        """
        ...
