"""Texts to hold summarizers against each other on."""

from itertools import islice
from pathlib import Path

from eval.dataset.sample import Sample
from lcm.errors import LcmError
from lcm.given import read_whole

_IN_A_TEXT = 3
"""Messages that follow each other."""


def sample_texts(count: int) -> list[str]:
    """The first stretches of three messages of the bundled conversations, each a message further on; English first."""
    said = (
        [f"{message.role}: {message.content}" for message in transcript.messages if message.content.strip()]
        for transcript in Sample().load().transcripts
    )
    stretches = ("\n".join(one[at : at + _IN_A_TEXT]) for one in said for at in range(len(one) - _IN_A_TEXT + 1))
    return list(islice(stretches, count))


def texts_of(path: Path, count: int) -> list[str]:
    """The first texts of a file, one on each line.

    Raises:
        LcmError: if it cannot be read, or holds none.
    """
    try:
        lines = read_whole(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise LcmError(f"texts={path} cannot be read ({err}); name a file in UTF-8 with a text on each line") from err
    found = [line.strip() for line in lines if line.strip()][:count]
    if not found:
        raise LcmError(f"texts={path} holds no text; name a file with a text on each line")
    return found
