"""How the conversations of a dataset were laid into haystacks: what is left to know of where they come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the queries and conversations of a dataset come from that was laid into other haystacks."""

    settings: Mapping[str, str | int]
    """How it was laid out: haystack, distractors, seed."""
    workspace_of_query: Mapping[str, str]
    """Query id -> the workspace in which it was asked before."""
    conversations: Mapping[str, Sequence[str]]
    """Such a workspace -> the ids of its own conversations."""
    messages_a_query: int
    """How many messages stood when a query was asked: the mean over queries."""
    told: Sequence[str]
    """What a reader of the numbers must know of it."""
