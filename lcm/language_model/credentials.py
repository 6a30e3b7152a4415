"""The keys that a server may be shown, and where each comes from.

Source: the architecture of lossless-claw asks for profiles, then the environment, then the configuration. A
configuration is written down with every run, so that ours names a file and never holds a key.
"""

import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lcm.consent import refused_file, refused_key
from lcm.errors import AuthError
from lcm.redaction import keep_secret

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Credential:
    """A key, never shown."""

    source: str
    """In words."""
    key: str | None = field(repr=False)
    """None for a server that wants none."""

    def __post_init__(self) -> None:
        keep_secret(self.key or "")  # a server may quote it


def credentials(
    url: str, profiles: str | None, profile: str | None, api_key_env: str | None, api_key_file: str | None
) -> list[Credential]:
    """The keys that are there, in the order in which they are tried; one without a key where no place is named.

    Args:
        url: where they are to be sent.
        profiles: a JSON file, {NAME: {"api_key": KEY}}.
        profile: the one of it; None = each, in the order of the file.
        api_key_env: an environment variable.
        api_key_file: a file with a key and nothing else.
    Raises:
        AuthError: if the user does not allow a place or the URL, if none of the places holds a key, or a key is none.
    """
    if profiles is None and api_key_env is None and api_key_file is None:
        return [Credential("no place", None)]
    refused = [] if api_key_env is None else refused_key(api_key_env, url)
    for name, place in {"profiles": profiles, "api_key_file": api_key_file}.items():
        refused += [] if place is None else refused_file(place, url, name)
    if refused:
        raise AuthError("; ".join(dict.fromkeys(refused)))
    found = [] if profiles is None else list(_of_profiles(profiles, profile))
    if api_key_env is not None:
        found.append(Credential(f"the environment variable {api_key_env}", os.environ.get(api_key_env, "").strip()))
    if api_key_file is not None:
        found.append(
            Credential("the file that api_key_file names", (_read(api_key_file, "api_key_file") or "").strip())
        )
    held: dict[str, Credential] = {}
    for credential in found:
        if credential.key:
            held.setdefault(credential.key, credential)
    for key, credential in held.items():
        if not (key.isascii() and key.isprintable()):
            raise AuthError(f"{credential.source} holds characters that no header can carry")
    if not held:
        raise AuthError(f"set {_places(profiles, profile, api_key_env, api_key_file)}")
    return list(held.values())


def _places(profiles: str | None, profile: str | None, api_key_env: str | None, api_key_file: str | None) -> str:
    places = [
        profiles and (f"the profile {profile!r} in the file that profiles names" if profile else "a profile"),
        api_key_env and f"the environment variable {api_key_env}",
        api_key_file and "the file that api_key_file names",
    ]
    return " or ".join(place for place in places if place)


def _of_profiles(path: str, profile: str | None) -> Iterator[Credential]:
    text = _read(path, "profiles")
    if text is None:
        return
    try:
        decoded: Any = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    if not isinstance(decoded, dict):
        raise AuthError('the file that profiles names is none: it must be a JSON object {NAME: {"api_key": KEY}}')
    for name in decoded if profile is None else [profile]:
        entry = decoded.get(name)
        key = entry.get("api_key") if isinstance(entry, dict) else None
        if isinstance(key, str) and key.strip():
            yield Credential(f"the profile {name!r}", key.strip())
        elif profile is not None:
            _log.warning("the file that profiles names has no key of the profile %r; looking elsewhere", name)


def _read(path: str, named_by: str) -> str | None:
    """The text of a file; never its path, in whose place somebody may have written a key."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        _log.warning("the file that %s names cannot be read (%s); looking elsewhere", named_by, reason)
        return None
