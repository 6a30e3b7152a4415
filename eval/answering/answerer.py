"""Who answers a dataset's question from what it is shown: the contract, and what passes through it.

`lcm expand-query` has answerers of its own (`conf/answerer`), which walk through summaries under a grant.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text that an answerer is shown."""

    text: str
    said_at: datetime | None = None
    """None: nobody knows, or it stands in the text."""
    rank: int | None = None
    """Among what was ranked for the question, from 1; None: it stands in a context, whose order is another."""


class Answerer(Protocol):
    """Laws: what it is shown is all that it reads; the same question and excerpts, the same answer."""

    def answer(self, question: str, excerpts: Sequence[Excerpt]) -> str:
        """In few words; empty where it says that the excerpts do not tell.

        Raises:
            UnansweredError: if there is no answer to be had this time; any other ModelError if there never is.
        """
        ...

    def choose(self, question: str, excerpts: Sequence[Excerpt], options: Mapping[str, str]) -> str:
        """The name of one of the options; empty where it names none. Raises as `answer` does.

        Args:
            options: name -> words, as `c` -> `You like jazz.`; in the order in which they are offered.
        """
        ...
