"""Redaction: what looks like a key or a password leaves no trace in what is written down or told.

One function, at every door: errors, logs, the screen, the files of a run, MLflow, and what a model's server replies.
Recorded transcripts are the user's own data: a store keeps them letter by letter, and they are not asked here.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from typing import Any

REDACTED = "REDACTED"
_NAMED = (
    r"(?:[\w-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key(?:[_-]?id)?|auth[_-]?token)"
    r"|(?:[\w-]*[_-])?(?:token|pwd))"
)
_PRIVATE = r"PRIVATE KEY(?: BLOCK)?-----"
_KEYS = re.compile(
    "|".join(
        (
            rf"-----BEGIN [A-Z0-9 ]*{_PRIVATE}[^\"']{{0,20000}}?-----END [A-Z0-9 ]*{_PRIVATE}",
            rf"-----BEGIN [A-Z0-9 ]*{_PRIVATE}[^\n\"']*(?:\s+[A-Za-z0-9+/=]{{40,}})*",  # cut off
            r"\bsk-[\w-]{6,}",  # OpenAI, Anthropic, OpenRouter
            r"\b[rs]k_(?:live|test)_\w{8,}",  # Stripe
            r"\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}",
            r"\bglpat-[\w-]{16,}",
            r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",  # AWS
            r"\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}",  # Google
            r"\bxox[abeoprs]-[\w-]{10,}|https://hooks\.slack\.com/services/[\w/]+",
            r"\bhf_\w{16,}|\bjina_\w{16,}|\bpcsk_\w{16,}|\bpa-[\w-]{24,}|\bgsk_\w{16,}|\br8_\w{16,}",
            r"\bnpm_\w{20,}|\bpypi-[\w-]{16,}|\bdop_v1_\w{16,}|\bdapi[0-9a-f]{32}\b",
            r"\bSG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
            r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*",  # JSON Web Tokens
        )
    )
)
_USER_INFO = re.compile(r"(?<=://)[^\s/@:'\"]*:[^\s/@'\"]+(?=@)")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)(\s+)(?!\[)[\w.~+/=-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"""(\b{_NAMED}\b(?:\\?["'])?\s*[=:]\s*(?:\\?["'])?)(?!{_NAMED}\b|null\b|none\b|true\b|false\b|bearer\b|basic\b)([^\s"'\\,;&}}\])\[$<*]{{6,}})""",
    re.IGNORECASE,
)
_HOLDS_A_KEY = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:$|_(?:ID|BASE64)$)")
_SHORTEST = 8
"""Letters of a variable's value, from which it is looked for: shorter ones are words."""


def redacted(text: str) -> str:
    """A text without what looks like a key, and without the values of variables whose names say that they hold one."""
    for secret in _of_the_environment():
        text = text.replace(secret, REDACTED)
    text = _KEYS.sub(REDACTED, text)
    text = _USER_INFO.sub(REDACTED, text)
    text = _AUTHORIZATION.sub(rf"\1\2{REDACTED}", text)
    return _ASSIGNED.sub(rf"\1{REDACTED}", text)


def redacted_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of JSON, all that it holds `redacted`: as a file of it will be read."""
    told: dict[str, Any] = json.loads(redacted(json.dumps(record, ensure_ascii=False)))
    return told


class RedactedFormatter(logging.Formatter):
    """Writes a log `redacted`, tracebacks too."""

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def redact_logs() -> None:
    """Have what is logged in this process say nothing of keys, whoever logs it and wherever it is shown."""
    logging.setLogRecordFactory(_redacted_log_record)


def _redacted_log_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = logging.LogRecord(*args, **kwargs)
    try:
        said = record.getMessage()
    except (TypeError, ValueError):  # of arguments that do not fit, which logging itself tells
        return record
    if (told := redacted(said)) != said:
        record.msg, record.args = told, ()
    return record


def _of_the_environment() -> list[str]:
    """The longest first, since one may hold another."""
    found = {
        value.strip()
        for name, value in os.environ.items()
        if _HOLDS_A_KEY.search(name) and len(value.strip()) >= _SHORTEST and not _is_path(value)
    }
    return sorted(found, key=lambda secret: (-len(secret), secret))


def _is_path(value: str) -> bool:
    """Whether a variable names the file that holds a key, rather than the key."""
    return value[:1] in "/~." and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111 - which take any text
