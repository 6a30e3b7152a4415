"""Replies kept by their content, so that a run can be repeated without asking again."""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol

from lcm.checks import check_choice
from lcm.encoding import to_json
from lcm.errors import ModelError, UnrecordedReplyError
from lcm.faults import made_again
from lcm.files import cache_dir, written_whole
from lcm.given import plain_bytes
from lcm.protocols.models import Usable
from lcm.redaction import redacted

_log = logging.getLogger(__name__)

Mode = Literal["record", "replay", "live"]


class IdentifiedModel(Protocol):
    """A language model that says what its replies depend on besides the words."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON; never where the model is served, nor a key."""
        ...

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str: ...


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
        path = self._folder() / f"{key}.json"
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

    def _folder(self) -> Path:
        return cache_dir() / "replies" if self.directory is None else Path(self.directory)

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
