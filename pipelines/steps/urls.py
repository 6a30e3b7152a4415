"""URLs on a command line: what they name is mirrored here before a command, and sent back behind it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eval.mirror import Mirror, is_url, local
from lcm.errors import LcmError
from pipelines.views.terminal import say

_WRITTEN = ("into", "to", "hydra.run.dir", "hydra.sweep.dir")
"""Keys of what a command writes, and goes on with where it is there."""
_CHANGED_BY = ("report", "doctor")
"""Commands that write into what their words name."""
_OF_DATASETS = ("evaluate",)
"""Commands whose words are those of a dataset, which fetches them itself: its configuration keeps the URL."""

_log = logging.getLogger(__name__)


@contextmanager
def mirrored(command: str, arguments: Sequence[str]) -> Iterator[list[str]]:
    """The arguments of a command with places on this machine in the place of URLs.

    What the command has written is sent when it ends, though it be by an error: the same command, on any machine, then
    goes on from there.
    """
    written: list[Mirror] = []
    placed = [_placed(command, argument, written) for argument in arguments]
    try:
        yield placed
    except Exception:
        try:
            _send(written)
        except LcmError as error:
            _log.warning("nor could what is kept be sent: %s", error)
        raise
    _send(written)


def _placed(command: str, argument: str, written: list[Mirror]) -> str:
    key, equals, value = argument.partition("=")
    if is_url(argument):
        if command in _OF_DATASETS:
            return argument
        place = local(argument)
        if command in _CHANGED_BY:
            written.append(Mirror.of(argument))
        return str(place)
    if not equals or not is_url(value):
        return argument
    if key in _WRITTEN:
        mirror = Mirror.of(value)
        mirror.fetch()
        written.append(mirror)
        return f"{key}={mirror.place}"
    # A key of the configuration stands in it as it was given; one of the command's own names a file to be read.
    return argument if "." in key else f"{key}={local(value)}"


def _send(written: Sequence[Mirror]) -> None:
    for mirror in written:
        if sent := mirror.send():
            say(f"Sent: {sent:,} file{'s' if sent > 1 else ''} to {mirror.url}")
