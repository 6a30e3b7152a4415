"""What a kind of generated questions is: a way from what was said to questions that it answers."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from eval.questions.making.talk import Talk


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that could be asked."""

    place: int
    """The turn that it was made from."""
    text: str
    evidence: tuple[int, ...]
    """The turns that answer it."""
    asked_at: datetime | None
    """None where no message names a time."""


class Kind(Protocol):
    """A `kinds` choice: one way of making questions, without a model.

    Laws: at most one draft a turn; each has words and evidence; all of its evidence was said before it is asked, or at
    that instant, and byte-equal copies of evidence that can be seen then are evidence too; a question that stands for
    a turn is asked before that turn was said; equal talks and seeds give equal drafts.
    """

    @property
    def n(self) -> int:
        """How many questions are wanted, over all workspaces."""
        ...

    def drafts(self, talk: Talk, seed: str) -> Iterator[Draft]:
        """Every question that could be asked of a workspace, in the order of its turns."""
        ...


@runtime_checkable
class Words(Protocol):
    """A kind whose drafts are put into words one by one, as far as questions are wanted."""

    def worded(self, draft: Draft, talk: Talk) -> str | None:
        """The question; None where no good one could be had."""
        ...


def drawing(seed: str, talk: Talk, place: int) -> random.Random:
    """Chance for what is made from one turn: other turns do not move it."""
    return random.Random(f"{seed}/{talk.workspace_id}/{talk.turns[place].message.message_id}")  # noqa: S311 - no secret
