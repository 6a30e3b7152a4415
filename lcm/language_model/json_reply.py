"""The JSON object inside a model's reply, whatever words or fences stand around it."""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from lcm.errors import LcmError, UnrecordedReplyError
from lcm.protocols.models import LanguageModel

_log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """What came of asking a language model for a JSON object."""

    found: dict[str, Any] | None
    reply: str = ""
    problem: str = ""
    """Why nothing was found."""


def asked(language_model: LanguageModel, system: str, shown: Mapping[str, Any], key: str, *, otherwise: str) -> Answer:
    """The object with `key` in the reply of a model to what it is shown as JSON, else the first object.

    Args:
        otherwise: what the log says happens where there is none.
    Raises:
        UnrecordedReplyError: if a replay lacks the reply; no other failure of the model is raised.
    """
    try:
        reply = language_model.reply(system, json.dumps(shown, ensure_ascii=False, indent=1), names(key))
    except UnrecordedReplyError:
        raise
    except LcmError as error:
        _log.warning("%s: %s", otherwise, error)
        return Answer(None, problem=f"no reply: {error}")
    if (found := object_in(reply, key)) is None:
        _log.warning("%s: no JSON object in the reply %.200r", otherwise, reply)
        return Answer(None, reply, "no JSON object in the reply")
    return Answer(found, reply)


def object_in(reply: str, key: str) -> dict[str, Any] | None:
    """The first object of the reply that holds `key`, else the first object at all; None where there is none."""
    first = None
    for found in _objects(reply):
        if key in found:
            return found
        first = found if first is None else first
    return first


def only_value(reply: str, key: str) -> object | None:
    """What the objects of a reply hold under `key`, where all that have it agree; else None.

    A reply that quotes what it was shown may hold an object of that, before its own.
    """
    found = [one[key] for one in _objects(reply) if key in one]
    return found[0] if found and all(type(one) is type(found[0]) and one == found[0] for one in found) else None


def names(key: str) -> Callable[[str], bool]:
    """What tells whether a reply holds an object with that key."""
    return lambda reply: key in (object_in(reply, key) or {})


def _objects(reply: str) -> Iterator[dict[str, Any]]:
    """Every object of the reply, and those under its keys; rows of a list inside of one are about something else."""
    decoder, at = json.JSONDecoder(), 0
    while (at := reply.find("{", at)) >= 0:
        try:
            found, at = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        waiting = [found]
        while waiting:
            yield (one := waiting.pop(0))
            waiting += [member for member in one.values() if isinstance(member, dict)]
