"""Whether a server refuses the credentials.

Source: lossless-claw 0.6.3, which tells such a refusal from other failures by the status, by the kind of the error and,
where the request failed, by its words.
"""

import re
from collections.abc import Iterator
from typing import Any

_REFUSED = (401, 403)
_TOO_MANY_REQUESTS = 429
_KINDS = frozenset(
    {"provider_auth", "authentication_error", "invalid_api_key", "unauthorized", "missing_scope", "insufficient_scope"}
)
_KIND_KEYS = ("kind", "type", "code", "status", "statusCode", "errorKind")
_WORDS = re.compile(
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
        body: the decoded response; None where it cannot be decoded.
    """
    if status in _REFUSED:
        return True
    errors = list(_errors(body))
    if any(str(error.get(key)).lower() in _KINDS | {"401"} for error in errors for key in _KIND_KEYS):
        return True
    is_refusal = 400 <= status < 500 and status != _TOO_MANY_REQUESTS
    return is_refusal and any(_WORDS.search(words) for error in errors for words in error.values() if _is_text(words))


def _errors(body: Any) -> Iterator[dict[str, Any]]:
    """The body and what it holds as its error."""
    if not isinstance(body, dict):
        return
    yield body
    error = body.get("error")
    if isinstance(error, dict):
        yield error


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
