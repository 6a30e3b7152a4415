"""A memory that is an HTTP server: a call is a POST of its arguments to URL/CALL, its reply JSON."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from queue import Empty, Queue
from threading import Thread
from typing import Any

import requests
import urllib3

from eval.external.session import CallName, FaultError, Limits
from lcm.consent import refused_data, refused_key
from lcm.errors import LcmError
from lcm.language_model.openai_compatible import is_timeout, without_netrc
from lcm.redaction import keep_secret, redacted

_READ_AT_ONCE = 1 << 16
_OK = 200


@dataclass(frozen=True, slots=True)
class Http(Limits):
    """Asks a server that is there already, and stays; it is the same for all workspaces."""

    url: str = ""
    api_key_env: str | None = None
    """The variable that holds a key, sent as a bearer token."""

    def open(self) -> "HttpConnection":
        if not self.url:
            raise LcmError("external.url names no server: write external.url=http://HOST:PORT")
        refused = [refused_data(self.url)] if self.api_key_env is None else refused_key(self.api_key_env, self.url)
        if told := "; ".join(filter(None, refused)):
            raise LcmError(f"external.url: {told}")
        key = None if self.api_key_env is None else os.environ.get(self.api_key_env, "")
        if key is not None:
            keep_secret(key)
        return HttpConnection(self.url.rstrip("/"), {} if key is None else {"Authorization": f"Bearer {key}"}, self)


class HttpConnection:
    """A `Connection` to a server."""

    noise = 0

    def __init__(self, url: str, headers: Mapping[str, str], limits: Limits) -> None:
        self._url, self._headers, self._limits = url, dict(headers), limits
        self._session = requests.Session()

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        limit_s = self._limits.start_s if name == "reset" else self._limits.timeout_s
        try:
            status, content = self._within(limit_s, name, arguments)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            if is_timeout(error):
                raise FaultError("timed out", f"no whole reply within {limit_s:g} s", is_end=True) from error
            raise FaultError("crashed", f"the connection fails: {type(error).__name__}", is_end=True) from error
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        error_told = reply.get("error") if isinstance(reply, dict) else None
        if error_told is not None or status != _OK:
            told = redacted(str(error_told))[:200] if error_told is not None else f"status {status}"
            raise FaultError("error", told, is_end=False)
        if not isinstance(reply, dict):
            raise FaultError("wrong reply", f"a reply must be a map of JSON, got {content[:80]!r}", is_end=False)
        return reply

    def close(self) -> None:
        self._session.close()

    def _within(self, limit_s: float, name: CallName, arguments: Mapping[str, Any]) -> tuple[int, bytes]:
        """What is replied in time. A thread asks, which is left behind by a server that sends a letter now and then:
        sockets count their time-out anew with each."""
        told = Queue[tuple[int, bytes] | Exception]()

        def ask() -> None:
            try:
                told.put(self._posted(name, arguments, limit_s))
            except Exception as error:  # raised again where it is waited for
                told.put(error)

        Thread(target=ask, daemon=True).start()
        try:
            reply = told.get(timeout=limit_s)
        except Empty:
            raise FaultError("timed out", f"no whole reply within {limit_s:g} s", is_end=True) from None
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _posted(self, name: CallName, arguments: Mapping[str, Any], limit_s: float) -> tuple[int, bytes]:
        deadline, content = time.monotonic() + limit_s, bytearray()
        with self._session.post(
            f"{self._url}/{name}", json=dict(arguments), headers=self._headers, timeout=limit_s, stream=True,
            allow_redirects=False, auth=without_netrc,
        ) as response:  # fmt: skip
            while chunk := response.raw.read1(_READ_AT_ONCE, decode_content=True):
                content += chunk
                if len(content) > self._limits.most_bytes:
                    raise FaultError("reply too large", f"more than {self._limits.most_bytes:,} bytes", is_end=True)
                if time.monotonic() > deadline:
                    raise FaultError("timed out", f"no whole reply within {limit_s:g} s", is_end=True)
        return response.status_code, bytes(content)
