"""Any model behind the chat completions of OpenAI's API, which most servers speak."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import sleep
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

import requests

from lcm.checks import check_range
from lcm.consent import refused_data
from lcm.errors import AuthError, ModelError, UnansweredError
from lcm.language_model.auth_failure import is_auth_failure
from lcm.language_model.credentials import Credential, credentials
from lcm.language_model.http_request import is_timeout, without_netrc
from lcm.language_model.reply_text import is_incomplete, reply_text
from lcm.protocols.models import Usable
from lcm.redaction import redacted

_log = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_SHOWN_CHARACTERS = 200


class _Reply(NamedTuple):
    text: str
    is_incomplete: bool


@dataclass(frozen=True, slots=True)
class OpenAiCompatible:
    """POST base_url/chat/completions with a system and a user message; the reply is the first choice's content.

    Too many requests (429), errors of the server (5xx) and timeouts are tried again after a pause: 1, 2, 4... seconds,
    or what the server asks for, at most 30. Anything else is not, except that a key which is refused leaves the request
    to the next one. The keys appear in no message.
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
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ValueError("base_url must begin with http:// or https://, name a host, and hold no user or password")
        if address.query or address.fragment or self.base_url.endswith(("?", "#")):
            raise ValueError("base_url must end before any ? or #: /chat/completions is added to it")
        if not self.model:
            raise ValueError("model must be the name of a model of the server, got ''")
        if self.api_key_env == "":
            raise ValueError("api_key_env must name an environment variable, or be null, got ''")
        if self.api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", self.api_key_env, re.ASCII):
            raise ValueError("api_key_env must be the name of an environment variable, never a key")
        if self.profile is not None and self.profiles is None:
            raise ValueError(f"profile must be null where profiles names no file, got {self.profile!r}")
        check_range(self, "temperature", ge=0, le=2, or_null=True)
        check_range(self, "max_tokens", ge=1, or_null=True)
        check_range(self, "timeout_seconds", gt=0)
        check_range(self, "retries", ge=0)

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
        keys = self._credentials()
        reply = self._asked(body, keys)
        if self.low_reasoning_retry and (reply.is_incomplete or not reply.text):
            reply = self._asked_again(body, keys, reply)
        if not reply.text:
            why = f": max_tokens {body.get('max_tokens')} was used up before it began" if reply.is_incomplete else ""
            raise UnansweredError(f"{self._url} answered with an empty reply{why}")
        if reply.is_incomplete:
            _log.warning("the reply of %s ends at max_tokens %s", self.model, body.get("max_tokens"))
        return redacted(reply.text)  # a server may quote what it was shown

    def _credentials(self) -> list[Credential]:
        if why := refused_data(self._url):
            raise AuthError(f"base_url: {why}")
        try:
            return credentials(self._url, self.profiles, self.profile, self.api_key_env, self.api_key_file)
        except AuthError as error:
            raise AuthError(f"no key for {self._url}: {error}") from error

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def _asked_again(self, body: dict[str, Any], keys: Sequence[Credential], first: _Reply) -> _Reply:
        """The reply to the same question with less thought before it; the first where that has no words."""
        problem = "is incomplete" if first.text else "is empty"
        _log.warning("the reply of %s %s; asking once more for low reasoning", self.model, problem)
        try:
            second = self._asked({**body, "reasoning_effort": "low"}, keys)
        except ModelError as error:
            if isinstance(error, AuthError) and not first.text:
                raise
            _log.warning("asking once more was in vain: %s", error)
            return first
        return second if second.text else first

    def _asked(self, body: dict[str, Any], keys: Sequence[Credential]) -> _Reply:
        """The reply to the first key that the server takes."""
        for i, credential in enumerate(keys, 1):
            try:
                return self._read(self._tried(body, credential, keys))
            except AuthError as error:
                if i == len(keys):
                    raise
                _log.warning("%s; trying the next key", error)
        raise AssertionError("there is always a credential, if only one without a key")

    def _tried(self, body: dict[str, Any], credential: Credential, keys: Sequence[Credential]) -> requests.Response:
        error: type[ModelError] = ModelError
        for pause_seconds in _pauses(self.retries):
            outcome = self._posted(body, credential.key)
            if not isinstance(outcome, requests.Response):
                reason, asked_for, error = outcome, None, UnansweredError
            elif is_auth_failure(outcome.status_code, _decoded(outcome)):
                raise AuthError(f"{self._url} {_refusal_of_key(outcome, credential)}")
            elif 200 <= outcome.status_code < 300:
                return outcome
            else:
                reason, asked_for, error = _refusal(outcome, keys), outcome.headers.get("Retry-After"), ModelError
                if outcome.status_code != _TOO_MANY_REQUESTS and outcome.status_code < 500:
                    break
            if pause_seconds is not None:
                wait_seconds = _seconds(asked_for, pause_seconds)
                _log.warning("%s %s; trying again in %g s", self._url, reason, wait_seconds)
                sleep(wait_seconds)
        raise error(f"{self._url} {reason}")

    def _posted(self, body: dict[str, Any], key: str | None) -> requests.Response | str:
        """The response, or the words for a timeout, which may be tried again."""
        try:
            return requests.post(
                self._url,
                headers={} if key is None else {"Authorization": f"Bearer {key}"},
                json=body,
                timeout=self.timeout_seconds,
                allow_redirects=False,  # the key is for this server alone
                auth=without_netrc,
            )
        except requests.RequestException as error:
            if not is_timeout(error):
                raise ModelError(f"{self._url} cannot be reached ({type(error).__name__})") from error
            return f"did not answer within {self.timeout_seconds:g} s"

    def _read(self, response: requests.Response) -> _Reply:
        try:
            decoded = response.json()
            return _Reply(reply_text(decoded), is_incomplete(decoded))
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._url} answered with what is no JSON") from error


def _pauses(retries: int) -> Iterator[float | None]:
    """Seconds to wait after each try that failed; None after the last."""
    for i in range(retries):
        yield min(_FIRST_PAUSE_SECONDS * 2.0**i, _LONGEST_PAUSE_SECONDS)
    yield None


def _seconds(asked_for: str | None, otherwise: float) -> float:
    """What the server asks for, where it does so in seconds."""
    if asked_for is None or not asked_for.strip().isdecimal():
        return otherwise
    return min(float(asked_for), _LONGEST_PAUSE_SECONDS)


def _refusal_of_key(response: requests.Response, credential: Credential) -> str:
    """The status alone: the server's own words may quote the key."""
    said = f"answered with HTTP status {response.status_code}"
    if 200 <= response.status_code < 300:
        said = "answered with an error of authentication"
    return f"{said}: check the key in {credential.source}" if credential.key else f"{said}: it wants a key"


def _refusal(response: requests.Response, keys: Sequence[Credential]) -> str:
    """The status and the server's own words, unless they quote a key."""
    said = f"answered with HTTP status {response.status_code}"
    decoded = _decoded(response)
    error = decoded.get("error") if isinstance(decoded, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or any(credential.key and credential.key in message for credential in keys):
        return said
    return f"{said}: {redacted(' '.join(message.split()))[:_SHOWN_CHARACTERS]}"


def _decoded(response: requests.Response) -> Any:
    """None where it is no JSON."""
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None
