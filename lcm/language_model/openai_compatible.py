"""Any model behind the chat completions of OpenAI's API, which most servers speak."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from lcm.errors import ModelError
from lcm.protocols import Usable

_log = logging.getLogger(__name__)

_TOO_MANY_REQUESTS = 429
_KEY_REFUSED = (401, 403)
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_SHOWN_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class OpenAiCompatible:
    """POST base_url/chat/completions with a system and a user message; the reply is the first choice's content.

    Too many requests (429), errors of the server (5xx) and timeouts are tried again after a pause: 1, 2, 4... seconds,
    or what the server asks for, at most 30. Anything else is not. The key appears in no message.
    """

    base_url: str
    """Up to where /chat/completions follows."""
    model: str = "openai/gpt-oss-120b"
    api_key_env: str | None = "OPENROUTER_API_KEY"
    """The environment variable with the key; None for a server that wants none."""
    temperature: float = 0.0
    max_tokens: int | None = 2048
    """Of the reply; None = as many as the server gives."""
    timeout_seconds: float = 30.0
    """Of each wait: for the connection, and for the next bytes of the reply."""
    retries: int = 2
    """How often a request is tried again."""

    def __post_init__(self) -> None:
        address = urlsplit(self.base_url)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ValueError("base_url must begin with http:// or https://, name a host, and hold no user or password")
        if not self.model:
            raise ValueError("model must be the name of a model of the server, got ''")
        if self.api_key_env == "":
            raise ValueError("api_key_env must name an environment variable, or be null, got ''")
        if not 0 <= self.temperature <= 2:
            raise ValueError(f"temperature must be between 0 and 2, got {self.temperature}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be >= 1 or null, got {self.max_tokens}")
        if not self.timeout_seconds > 0:
            raise ValueError(f"timeout_seconds must be > 0, got {self.timeout_seconds}")
        if self.retries < 0:
            raise ValueError(f"retries must be >= 0, got {self.retries}")

    @property
    def identity(self) -> dict[str, Any]:
        """What a reply depends on besides the words: wherever the model is served, it is the same model."""
        return {"model": self.model, "temperature": float(self.temperature), "max_tokens": self.max_tokens}

    def reply(self, system: str, prompt: str, is_usable: Usable | None = None) -> str:
        """Ask once; an empty `system` is left out.

        Raises:
            ModelError: if there is no key, or no reply after the last try.
        """
        key = self._key()
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        body: dict[str, Any] = {"model": self.model, "messages": messages, "temperature": self.temperature}
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        return self._content(self._asked(body, key))

    def _key(self) -> str | None:
        if self.api_key_env is None:
            return None
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ModelError(f"no key for {self._url}: set the environment variable {self.api_key_env}")
        if not (key.isascii() and key.isprintable()):
            raise ModelError(f"the environment variable {self.api_key_env} holds characters that no header can carry")
        return key

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def _asked(self, body: dict[str, Any], key: str | None) -> requests.Response:
        for pause_seconds in _pauses(self.retries):
            outcome = self._posted(body, key)
            if not isinstance(outcome, requests.Response):
                reason, asked_for = outcome, None
            elif 200 <= outcome.status_code < 300:
                return outcome
            else:
                reason, asked_for = _refusal(outcome, self.api_key_env, key), outcome.headers.get("Retry-After")
                if outcome.status_code != _TOO_MANY_REQUESTS and outcome.status_code < 500:
                    break
            if pause_seconds is not None:
                wait_seconds = _seconds(asked_for, pause_seconds)
                _log.warning("%s %s; trying again in %g s", self._url, reason, wait_seconds)
                sleep(wait_seconds)
        raise ModelError(f"{self._url} {reason}")

    def _posted(self, body: dict[str, Any], key: str | None) -> requests.Response | str:
        """The response, or the words for a timeout, which may be tried again."""
        try:
            return requests.post(
                self._url,
                headers={} if key is None else {"Authorization": f"Bearer {key}"},
                json=body,
                timeout=self.timeout_seconds,
                allow_redirects=False,  # the key is for this server alone
                auth=_as_it_is,
            )
        except requests.RequestException as error:
            if not _is_timeout(error):
                raise ModelError(f"{self._url} cannot be reached ({type(error).__name__})") from error
            return f"did not answer within {self.timeout_seconds:g} s"

    def _content(self, response: requests.Response) -> str:
        try:
            decoded = response.json()
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._url} answered with what is no JSON") from error
        choices = decoded.get("choices") if isinstance(decoded, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            raise ModelError(f"{self._url} answered without any choice")
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        is_cut = choice.get("finish_reason") == "length"
        if not isinstance(content, str) or not content.strip():
            why = f": max_tokens {self.max_tokens} was used up before it began" if is_cut else ""
            raise ModelError(f"{self._url} answered with an empty reply{why}")
        if is_cut:
            _log.warning("the reply of %s ends at max_tokens %s", self.model, self.max_tokens)
        return content


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


def _refusal(response: requests.Response, key_env: str | None, key: str | None) -> str:
    """The status and the server's own words, except about keys: those may quote it."""
    said = f"answered with HTTP status {response.status_code}"
    if response.status_code in _KEY_REFUSED:
        return f"{said}: check the key in the environment variable {key_env}" if key else f"{said}: it wants a key"
    try:
        decoded = response.json()
    except (ValueError, RecursionError):
        return said
    error = decoded.get("error") if isinstance(decoded, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    if not isinstance(message, str) or (key is not None and key in message):
        return said
    return f"{said}: {' '.join(message.split())[:_SHOWN_CHARACTERS]}"


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No other authentication: requests would put that of a .netrc in the place of the key."""
    return request


def _is_timeout(error: requests.RequestException) -> bool:
    """Also in the middle of a reply, where requests calls it an error of the connection."""
    cause = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(cause, urllib3.exceptions.ReadTimeoutError)
