"""Replies of language models apart from any server: none, kept ones, and the JSON object inside of one."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from lcm.checks import check_choice
from lcm.encoding import to_json
from lcm.errors import LcmError, ModelError, UnrecordedReplyError
from lcm.faults import made_again
from lcm.files import cache_dir, written_whole
from lcm.given import plain_bytes
from lcm.protocols.models import LanguageModel, Usable
from lcm.redaction import redacted


@dataclass(frozen=True, slots=True)
class NoModel:
    """Whoever asks is told how to choose one."""

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Never replies.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "no language model is configured: choose language_model=openai_compatible and set its base_url, model and "
            "the environment variable that its api_key_env names"
        )


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


Mode = Literal["record", "replay", "live"]


class IdentifiedModel(LanguageModel, Protocol):
    """A language model that says what its replies depend on besides the words."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON; never where the model is served, nor a key."""
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """A model whose replies are kept, one JSON file each, named by the digest of identity, system and prompt.

    record: the kept reply, else ask and keep it; a kept one that its reader cannot use is asked for again. replay: the
    kept reply, and never a request. live: always ask, and keep nothing. A file that is not as it was written is asked
    for again when recording, and an error in a replay.
    """

    is_online: ClassVar[bool] = True
    model: IdentifiedModel
    directory: str | None = None
    """None = the folder `replies` of the cache."""
    mode: Mode = "record"

    def __post_init__(self) -> None:
        if not callable(getattr(self.model, "reply", None)) or not hasattr(self.model, "identity"):
            raise TypeError(f"model must have reply() and identity, got {self.model!r}")
        check_choice(self, mode=Mode)

    @property
    def identity(self) -> Mapping[str, Any]:
        """The model's."""
        return self.model.identity

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """The kept reply, or a new one, as the mode says.

        A temperature and a length of this request stand in the place of the model's, in the name of the file too.

        Raises:
            ModelError: if no reply could be had, or a new one cannot be kept.
            UnrecordedReplyError: if a replay lacks it.
        """
        if self.mode == "live":
            return self.model.reply(system, prompt, temperature=temperature, max_tokens=max_tokens)
        asked = {**self.model.identity, "system": system, "prompt": prompt}
        if temperature is not None:
            asked["temperature"] = float(temperature)
        if max_tokens is not None:
            asked["max_tokens"] = max_tokens
        key = _digest(to_json(dict(sorted(asked.items()))))
        folder = cache_dir() / "replies" if self.directory is None else Path(self.directory)
        path = folder / f"{key}.json"
        try:
            kept = plain_bytes(path)
        except FileNotFoundError:
            kept = None
        except OSError as error:
            raise ModelError(f"{path} cannot be read ({error.strerror})") from error
        reply = None if kept is None else _reply_in(kept, key)
        if reply is not None and (self.mode == "replay" or is_usable is None or is_usable(reply)):
            return reply
        if self.mode == "replay":
            problem = "there is no recorded reply" if kept is None else "the recorded reply is damaged"
            raise UnrecordedReplyError(f"{problem} {key} in {path.parent}: run once with language_model.mode=record")
        if kept is not None and reply is None:
            made_again("recorded reply", f"the recorded reply {path} is damaged; it is asked for again")
        elif kept is not None:
            _log.warning("the recorded reply %s is not what was asked for; it is asked for again", path)
        reply = self.model.reply(system, prompt, temperature=temperature, max_tokens=max_tokens)
        shown = {name: redacted(value) if isinstance(value, str) else value for name, value in asked.items()}
        self._keep(path, {**shown, "reply": reply, "sha256": _seal(key, reply)})
        return reply

    def _keep(self, path: Path, record: Mapping[str, Any]) -> None:
        try:
            with written_whole(path) as stream:
                stream.write((json.dumps(record, indent=1) + "\n").encode())
        except OSError as error:
            raise ModelError(
                f"{path} cannot be written ({error.strerror}); set language_model.directory to a folder that can"
            ) from error


def _reply_in(kept: bytes, key: str) -> str | None:
    """The reply of a file, None if it is not what was written for this key."""
    try:
        record = json.loads(kept)
    except (ValueError, RecursionError):
        return None
    reply = record.get("reply") if isinstance(record, dict) else None
    return reply if isinstance(reply, str) and record.get("sha256") == _seal(key, reply) else None


def _seal(key: str, reply: str) -> str:
    return _digest(f"{key}\n{reply}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
