"""What several floors ask: token estimators, embedders, language models."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
"""Shape (n, dim), float32, rows of unit length."""


TextKind = Literal["query", "document"]


class TokenEstimator(Protocol):
    """Laws: never negative; 0 for the empty text; deterministic."""

    @property
    def image_tokens(self) -> int | None:
        """What an image costs; None = as the text that it is written in."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]: ...


@runtime_checkable
class TakesRecorded(Protocol):
    """A token estimator that takes the number that a session recorded, where it did.

    Laws: shares are whole, never negative, and add up to the number.
    """

    def shares(self, tokens: int, estimated: Sequence[int]) -> list[int]:
        """Share what was recorded of an answer among its messages, of which there are the estimates."""
        ...


class Embedder(Protocol):
    """Text to unit vectors.

    Laws: rows have unit length; the same text gives the same row bit for bit, whatever stands beside it, in
    whichever process; `name` changes whenever the rows could. Constructing one opens no model.
    """

    @property
    def name(self) -> str:
        """Identifies weights and settings: the key of the embedding cache."""
        ...

    @property
    def dim(self) -> int: ...

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        """Cut each text into overlapping pieces that the model reads whole; a short text is its own only piece."""
        ...

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        """Embed texts of at most one window each; what lies beyond the window is not read."""
        ...


@runtime_checkable
class AnswersInParts(Protocol):
    """An embedder of which every row has its price: rows come some at a time, and are kept as they come."""

    mode: Literal["record", "replay"]
    """replay: it answers nothing; what is kept is all there is."""
    spent: dict[str, int]
    """Requests, texts and tokens so far, in this process."""

    def price(self, tokens: int) -> float | None:
        """What so many tokens cost; None where that is not known."""
        ...

    def parts(self, texts: Sequence[str], kind: TextKind, cached: int = 0) -> Iterator[tuple[Sequence[int], Vectors]]:
        """Yield the places of some texts and their rows, until each has come.

        Args:
            cached: how many others are cached, which is told before anything is spent.
        Raises:
            ModelError: if some do not come; what has come was yielded.
        """
        ...


@runtime_checkable
class CallsServer(Protocol):
    """A component that asks a server: what it gives may differ tomorrow, so nothing made with it is kept."""

    is_online: ClassVar[bool]


@runtime_checkable
class ReadsModel(Protocol):
    """A component that reads a model from a folder, by whatever word its settings name it."""

    def model_folder(self) -> Path:
        """Where it lies, now.

        Raises:
            ModelError: if it is not there.
        """
        ...


Usable = Callable[[str], bool]


class LanguageModel(Protocol):
    """Laws: with recorded replies the same prompt gives the same reply, offline."""

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Ask once.

        Args:
            system: what the model is to be.
            prompt: what is asked.
            is_usable: says whether a reply is what was asked for. A recorded one that is not is asked for again.
            temperature: of this reply; None = as the model is set.
            max_tokens: of this reply; None = as the model is set.
        Raises:
            ModelError: if no reply could be had, with the reason; an AuthError if the server refuses the credentials.
        """
        ...
