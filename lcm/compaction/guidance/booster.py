"""How near texts are to what rules say, by an embedder that may fail."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np
import yaml

from lcm.errors import LcmError
from lcm.protocols.models import Embedder, Vectors

_LOG = logging.getLogger(__name__)


def has_surface_hint(text: str) -> bool:
    """Whether a text holds a word that rules often hold ("prefer", "should", "don't"), in either case."""
    return _hints().search(text) is not None


def similarities(embedder: Embedder, texts: Sequence[str], incidents: Counter[str]) -> list[float]:
    """The best cosine of any window of each text to any prototype, clamped to [0, 1].

    A text that cannot be embedded gets 0 and a prototype that cannot is left out; each is counted in `incidents`.
    """
    prototypes = _windows_of(embedder, _words()["prototypes"], "guidance prototype not embedded", incidents)
    known = [vectors for vectors in prototypes if vectors is not None]
    if not known:
        return [0.0] * len(texts)
    goal = np.concatenate(known)
    return [
        0.0 if vectors is None else float(np.clip(np.max(vectors @ goal.T), 0.0, 1.0))
        for vectors in _windows_of(embedder, texts, "guidance text not embedded", incidents)
    ]


def _windows_of(
    embedder: Embedder, texts: Sequence[str], incident: str, incidents: Counter[str]
) -> list[Vectors | None]:
    """The vectors of the windows of each text; None where there are none.

    One call, or one a text if that call fails.
    """
    try:
        windows = embedder.windows(texts)
        rows = embedder.embed([window for pieces in windows for window in pieces], "document")
    except LcmError as err:
        if len(texts) > 1:
            return [row for text in texts for row in _windows_of(embedder, [text], incident, incidents)]
        _LOG.warning("%s: %s", incident, err)
        incidents[incident] += 1
        return [None]
    ends = np.cumsum([len(pieces) for pieces in windows])
    return [part if len(part) else None for part in np.split(rows, ends[:-1])]


@cache
def _words() -> dict[str, list[str]]:
    words: dict[str, list[str]] = yaml.safe_load(
        resources.files("lcm.compaction.guidance").joinpath("protection.yaml").read_text("utf-8")
    )
    return words


@cache
def _hints() -> re.Pattern[str]:
    alternatives = "|".join(re.escape(hint) for hint in _words()["surface_hints"])
    return re.compile(rf"\b(?:{alternatives})\b".replace("'", "['’]"), re.IGNORECASE)
