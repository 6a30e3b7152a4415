"""Any model behind the chat completions of OpenAI's API, which most servers speak: the keys that a server may be shown
and where each comes from, whether it refuses them, and the words of its response, whichever of the usual shapes it has.

Source of these three: lossless-claw 0.6.3. It tells a refusal from other failures by the status, by the kind of the
error and, where the request failed, by its words; it collects `text` and `output_text` wherever they lie (the shape of
OpenAI's chat completions is read here besides); it asks for profiles, then the environment, then the configuration. A
configuration is written down with every run, so that ours names a file and never holds a key.
"""

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import requests
import urllib3

from lcm.checks import check_range
from lcm.consent import refused_data, refused_file, refused_key
from lcm.errors import AuthError, ModelError, UnansweredError
from lcm.javascript import trim
from lcm.protocols.models import Usable
from lcm.redaction import keep_secret, redacted


def without_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No other authentication: requests would put that of a .netrc in the place of the key."""
    return request


def is_timeout(error: Exception) -> bool:
    """Say whether the server was too slow: in the middle of a reply requests calls that an error of the connection."""
    cause = error.args[0] if error.args else None
    of_urllib3 = urllib3.exceptions.ReadTimeoutError
    return isinstance(error, requests.Timeout | of_urllib3) or isinstance(cause, of_urllib3)


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
    refused = [] if api_key_env is None else refused_key(api_key_env, url)
    for name, place in {"profiles": profiles, "api_key_file": api_key_file}.items():
        refused += [] if place is None else refused_file(place, url, name)
    if refused:
        raise AuthError("; ".join(dict.fromkeys(refused)))
    places: list[str] = []
    found: list[tuple[str, str]] = []
    if profiles is not None:
        places.append(f"the profile {profile!r} in the file that profiles names" if profile else "a profile")
        found += _of_profiles(profiles, profile)
    if api_key_env is not None:
        places.append(f"the environment variable {api_key_env}")
        found.append((places[-1], os.environ.get(api_key_env, "")))
    if api_key_file is not None:
        places.append("the file that api_key_file names")
        found.append((places[-1], _read_key(api_key_file, "api_key_file")))
    if not places:
        return [Credential("no place", None)]
    sources: dict[str, str] = {}
    for source, key in found:
        if key.strip():
            sources.setdefault(key.strip(), source)
    for key, source in sources.items():
        if not (key.isascii() and key.isprintable()):
            raise AuthError(f"{source} holds characters that no header can carry")
    if not sources:
        raise AuthError(f"set {' or '.join(places)}")
    return [Credential(source, key) for key, source in sources.items()]


def _of_profiles(path: str, profile: str | None) -> Iterator[tuple[str, str]]:
    text = _read_key(path, "profiles")
    if not text:
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
            yield f"the profile {name!r}", key
        elif profile is not None:
            _log.warning("the file that profiles names has no key of the profile %r; looking elsewhere", name)


def _read_key(path: str, named_by: str) -> str:
    """The text of a file, empty where there is none; never its path, in whose place somebody may have written a key."""
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        _log.warning("the file that %s names cannot be read (%s); looking elsewhere", named_by, reason)
        return ""


_REFUSED = (401, 403)
_TOO_MANY_REQUESTS = 429
_KINDS = frozenset(
    {"provider_auth", "authentication_error", "invalid_api_key", "unauthorized", "missing_scope", "insufficient_scope"}
)
_KIND_KEYS = ("kind", "type", "code", "status", "statusCode", "errorKind")
_OF_KEYS = re.compile(
    r"\bunauthori[sz]ed\b|\bauthentication\b|\b(?:missing|insufficient|invalid)[ _](?:\w+ )?scopes?\b"
    r"|\b(?:invalid|incorrect|missing|expired|wrong|no)[ _](?:\w+ )?(?:api[ _-]?key|credentials?|access token)\b"
    r"|\b(?:api[ _-]?key|credentials?|access token)s? (?:is|are|was|has|not)(?: \w+)? ?"
    r"(?:invalid|valid|incorrect|missing|expired|provided|found)\b",
    re.IGNORECASE,
)


def is_auth_failure(status: int, body: Any) -> bool:
    """Say whether a response is a refusal of the credentials.

    HTTP 401 and 403 are, and so is a body that names 401 or such a kind of error, whatever the status. The words of a
    message count only where the request failed: a summary may speak of keys.

    Args:
        status: of HTTP.
        body: the decoded response.
    """
    if status in _REFUSED:
        return True
    holders = (body, body.get("error")) if isinstance(body, dict) else ()
    errors = [one for one in holders if isinstance(one, dict)]
    if any(str(error.get(key)).lower() in _KINDS | {"401"} for error in errors for key in _KIND_KEYS):
        return True
    is_refusal = 400 <= status < 500 and status != _TOO_MANY_REQUESTS
    words = (word for error in errors for word in error.values() if isinstance(word, str))
    return is_refusal and any(map(_OF_KEYS.search, words))


_TEXT_KEYS = ("text", "output_text")
_CONTAINERS = ("content", "summary", "output", "message", "response")
_THOUGHTS = ("reasoning", "thinking")


def reply_text(body: Any) -> str:
    """The distinct fragments of a decoded response, trimmed, a line each; empty where it has no words.

    They are looked for in the first choice, else in `content`, else in the whole response. What a model thought before
    it spoke is left out.
    """
    for place in _places(body):
        trimmed = (trim(fragment) for fragment in _fragments(place))
        if fragments := dict.fromkeys(fragment for fragment in trimmed if fragment):
            return "\n".join(fragments)
    return ""


def is_incomplete(body: Any) -> bool:
    """Say whether any part of a decoded response tells that it was cut short."""
    if isinstance(body, list):
        return any(is_incomplete(child) for child in body)
    if not isinstance(body, dict):
        return False
    is_cut = body.get("status") == "incomplete" or body.get("finish_reason") == "length"
    return is_cut or bool(body.get("incomplete_details")) or any(is_incomplete(child) for child in body.values())


def _places(body: Any) -> Iterator[Any]:
    if not isinstance(body, dict):
        return
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(choice, dict):
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        yield {"text": content} if isinstance(content, str) else message
        yield choice
    yield body.get("content")
    yield body


def _fragments(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for child in node:
            yield from _fragments(child)
    elif isinstance(node, dict) and not _is_thought(node):
        for key in _TEXT_KEYS:
            yield from _words(node.get(key))
        for key in _CONTAINERS:
            yield from _fragments(node.get(key))


def _words(value: Any) -> Iterator[str]:
    """Text as such, as a list, or inside an object that annotates it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from _words(child)
    elif isinstance(value, dict):
        yield from _words(value.get("value"))
        yield from _words(value.get("text"))


def _is_thought(node: dict[str, Any]) -> bool:
    kind = node.get("type")
    return isinstance(kind, str) and any(word in kind.lower() for word in _THOUGHTS)


_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_SHOWN_CHARACTERS = 200
_NO_JSON = object()


_PATH = "/chat/completions"


def check_server(component: Any, path: str) -> None:
    """Refuse fields that name no server, no model of it, or no variable with a key; or no time and no tries.

    Args:
        component: with base_url, model, api_key_env, timeout_seconds and retries.
        path: is added to the base_url.
    """
    address = urlsplit(component.base_url)
    if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
        raise ValueError("base_url must begin with http:// or https://, name a host, and hold no user or password")
    if address.query or address.fragment or component.base_url.endswith(("?", "#")):
        raise ValueError(f"base_url must end before any ? or #: {path} is added to it")
    if not component.model:
        raise ValueError("model must be the name of a model of the server, got ''")
    if component.api_key_env == "":
        raise ValueError("api_key_env must name an environment variable, or be null, got ''")
    if component.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", component.api_key_env, re.ASCII):
        raise ValueError("api_key_env must be the name of an environment variable, never a key")
    check_range(component, "timeout_seconds", gt=0)
    check_range(component, "retries", ge=0)


@dataclass(frozen=True, slots=True)
class Server:
    """A URL that answers JSON with JSON.

    Too many requests (429), errors of the server (5xx) and timeouts are tried again after a pause: 1, 2, 4... seconds,
    or what the server asks for, at most 30. Anything else is not, except that a key which is refused leaves the request
    to the next one. The keys appear in no message.
    """

    url: str
    timeout_seconds: float
    """Of each wait: for the connection, and for the next bytes of the reply."""
    retries: int
    """How often a request is tried again."""

    def keys(
        self, profiles: str | None, profile: str | None, api_key_env: str | None, api_key_file: str | None
    ) -> list[Credential]:
        """The keys that `credentials` finds for this server.

        Raises:
            AuthError: if there are none, or the user does not allow them or the server.
        """
        if why := refused_data(self.url):
            raise AuthError(f"base_url: {why}")
        try:
            return credentials(self.url, profiles, profile, api_key_env, api_key_file)
        except AuthError as error:
            raise AuthError(f"no key for {self.url}: {error}") from error

    def post(self, body: Mapping[str, Any], keys: Sequence[Credential]) -> Any:
        """The decoded reply to the first key that the server takes.

        Raises:
            AuthError: if it takes none.
            UnansweredError: if it does not answer in time.
            ModelError: if there is no reply for another reason after the last try.
        """
        for i, credential in enumerate(keys, 1):
            try:
                return self._tried(body, credential, keys)
            except AuthError as error:
                if i == len(keys):
                    raise
                _log.warning("%s; trying the next key", error)
        raise AssertionError("there is always a credential, if only one without a key")

    def _tried(self, body: Mapping[str, Any], credential: Credential, keys: Sequence[Credential]) -> Any:
        """The decoded response to one key, after as many tries as it takes."""
        for number in range(self.retries + 1):
            asked_for = None
            try:
                response = requests.post(
                    self.url,
                    headers={} if credential.key is None else {"Authorization": f"Bearer {credential.key}"},
                    json=body,
                    timeout=self.timeout_seconds,
                    allow_redirects=False,  # the key is for this server alone
                    auth=without_netrc,
                )
            except requests.RequestException as failure:
                if not is_timeout(failure):
                    raise ModelError(f"{self.url} cannot be reached ({type(failure).__name__})") from failure
                error: ModelError = UnansweredError(f"{self.url} did not answer within {self.timeout_seconds:g} s")
            else:
                decoded, status = _decoded(response), response.status_code
                if is_auth_failure(status, decoded):
                    raise AuthError(f"{self.url} {_refusal_of_key(status, credential)}")
                if 200 <= status < 300 and decoded is not _NO_JSON:
                    return decoded
                error = ModelError(f"{self.url} {_refusal(status, decoded, keys)}")
                if status != _TOO_MANY_REQUESTS and status < 500:
                    raise error
                asked_for = response.headers.get("Retry-After")
            if number < self.retries:
                wait_seconds = _seconds(asked_for, min(_FIRST_PAUSE_SECONDS * 2.0**number, _LONGEST_PAUSE_SECONDS))
                _log.warning("%s; trying again in %g s", error, wait_seconds)
                sleep(wait_seconds)
        raise error


class _Reply(NamedTuple):
    text: str
    is_incomplete: bool


def _reply_to(decoded: Any) -> _Reply:
    return _Reply(reply_text(decoded), is_incomplete(decoded))


@dataclass(frozen=True, slots=True)
class OpenAiCompatible:
    """POST base_url/chat/completions with a system and a user message; the reply is the first choice's content.

    What is tried again is told by `Server`.
    """

    is_online: ClassVar[bool] = True
    base_url: str
    """Up to where /chat/completions follows."""
    model: str = "openai/gpt-oss-120b"
    profiles: str | None = None
    """A JSON file with keys, {NAME: {"api_key": KEY}}: they are tried first."""
    profile: str | None = None
    """The one of them that counts; None = each, in the order of the file."""
    api_key_env: str | None = "OPENROUTER_API_KEY"
    """The environment variable with the key that is tried next."""
    api_key_file: str | None = None
    """A file with the key that is tried last. A server that wants no key has None in all four."""
    temperature: float | None = 0.0
    """None = the server's own."""
    max_tokens: int | None = 2048
    """Of the reply; None = as many as the server gives."""
    timeout_seconds: float = 30.0
    """Of each wait: for the connection, and for the next bytes of the reply."""
    retries: int = 2
    """How often a request is tried again."""
    low_reasoning_retry: bool = True
    """Ask once more, for low reasoning, where a reply is empty or cut; the first stands if that brings no words."""

    def __post_init__(self) -> None:
        check_server(self, _PATH)
        if self.profile is not None and self.profiles is None:
            raise ValueError(f"profile must be null where profiles names no file, got {self.profile!r}")
        check_range(self, "temperature", ge=0, le=2, or_null=True)
        check_range(self, "max_tokens", ge=1, or_null=True)

    @property
    def identity(self) -> dict[str, Any]:
        """What a reply depends on besides the words: wherever the model is served, it is the same model."""
        temperature = None if self.temperature is None else float(self.temperature)
        return {"model": self.model, "temperature": temperature, "max_tokens": self.max_tokens}

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Ask; an empty `system` is left out.

        Raises:
            AuthError: if there is no key, or none that the server takes.
            UnansweredError: if it has no words, or not in time.
            ModelError: if there is no reply for another reason after the last try.
        """
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        body: dict[str, Any] = {"model": self.model, "messages": messages}
        settings = {
            "temperature": self.temperature if temperature is None else temperature,
            "max_tokens": self.max_tokens if max_tokens is None else max_tokens,
        }
        body |= {name: value for name, value in settings.items() if value is not None}
        server = Server(f"{self.base_url.rstrip('/')}{_PATH}", self.timeout_seconds, self.retries)
        keys = server.keys(self.profiles, self.profile, self.api_key_env, self.api_key_file)
        reply = _reply_to(server.post(body, keys))
        if self.low_reasoning_retry and (reply.is_incomplete or not reply.text):
            reply = self._asked_again(server, body, keys, reply)
        if not reply.text:
            why = f": max_tokens {body.get('max_tokens')} was used up before it began" if reply.is_incomplete else ""
            raise UnansweredError(f"{server.url} answered with an empty reply{why}")
        if reply.is_incomplete:
            _log.warning("the reply of %s ends at max_tokens %s", self.model, body.get("max_tokens"))
        return redacted(reply.text)  # a server may quote what it was shown

    def _asked_again(self, server: Server, body: dict[str, Any], keys: Sequence[Credential], first: _Reply) -> _Reply:
        """The reply to the same question with less thought before it; the first where that has no words."""
        problem = "is incomplete" if first.text else "is empty"
        _log.warning("the reply of %s %s; asking once more for low reasoning", self.model, problem)
        try:
            second = _reply_to(server.post({**body, "reasoning_effort": "low"}, keys))
        except ModelError as error:
            if isinstance(error, AuthError) and not first.text:
                raise
            _log.warning("asking once more was in vain: %s", error)
            return first
        return second if second.text else first


def _seconds(asked_for: str | None, otherwise: float) -> float:
    """What the server asks for, where it does so in seconds."""
    if asked_for is None or not asked_for.strip().isdecimal():
        return otherwise
    return min(float(asked_for), _LONGEST_PAUSE_SECONDS)


def _refusal_of_key(status: int, credential: Credential) -> str:
    """The status alone: the server's own words may quote the key."""
    is_answer = 200 <= status < 300
    said = f"answered with {'an error of authentication' if is_answer else f'HTTP status {status}'}"
    return f"{said}: check the key in {credential.source}" if credential.key else f"{said}: it wants a key"


def _refusal(status: int, decoded: Any, keys: Sequence[Credential]) -> str:
    """The status and the server's own words, unless they quote a key."""
    if 200 <= status < 300:
        return "answered with what is no JSON"
    error = decoded.get("error") if isinstance(decoded, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    said = f"answered with HTTP status {status}"
    if not isinstance(message, str) or any(credential.key and credential.key in message for credential in keys):
        return said
    return f"{said}: {redacted(' '.join(message.split()))[:_SHOWN_CHARACTERS]}"


def _decoded(response: requests.Response) -> Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return _NO_JSON
