"""Vectors of texts that are asked for again and again, as a talk grows by a few a question."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from lcm.protocols.models import Vectors


class KeptVectors:
    """The vectors of the texts that were asked for last, by the embedder's name; safe to use from several threads."""

    def __init__(self, most: int) -> None:
        """
        Args:
            most: vectors that are kept; the ones asked for longest ago go first.
        """
        self._most = most
        self._vectors: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, name: str, texts: Sequence[str], make: Callable[[list[str]], Vectors]) -> Vectors:
        """A vector of each text, shape (n, dim); at least one text.

        Args:
            name: of the embedder.
            make: gives a vector of each of some texts that are not kept.
        """
        with self._lock:
            known = {text: self._vectors[name, text] for text in texts if (name, text) in self._vectors}
        if missing := [text for text in dict.fromkeys(texts) if text not in known]:
            known |= zip(missing, make(missing), strict=True)
        with self._lock:
            for text, vector in known.items():
                self._vectors[name, text] = vector
                self._vectors.move_to_end((name, text))
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)
        return np.stack([known[text] for text in texts])
