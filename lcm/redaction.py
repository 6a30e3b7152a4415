"""Redaction: what looks like a key or a password leaves no trace in what is written down or told.

One function, at every door: errors, logs, the screen, the files of a run, MLflow, and what a model's server replies.
Recorded transcripts are the user's own data: a store keeps them letter by letter, and they are not asked here.
"""

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

REDACTED = "REDACTED"
_WORDS = r"(?:password|passwd|passphrase|secret|(?:api|account)[_-]?key|access[_-]?key(?:[_-]?id)?|auth[_-]?token"
_WORDS += r"|(?<![^\W_])(?:token|pwd))\b"
_NONE = rf"[\w-]{{0,64}}{_WORDS}|(?:null|none|true|false|bearer|basic)\b"
_NOT = rf"{_NONE}|[\s,:}}\])\[{{($<*]"
_PRIVATE = r"PRIVATE KEY(?: BLOCK)?-----"
# Any text is read in time that grows with its length alone: what repeats without a bound is possessive, ends its
# pattern or cannot begin again within what it has read.
_TAILS = {
    r"[\w-]{6,}": ("sk-",),  # OpenAI, Anthropic, OpenRouter
    r"\w{8,}": ("rk_live_", "rk_test_", "sk_live_", "sk_test_"),  # Stripe
    r"[\w+/=]{16,}": ("whsec_",),
    r"\w{16,}": (
        *("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "gsk_", "hf_", "jina_", "pcsk_", "r8_", "dop_v1_"),
        *("shpat_", "shpca_", "shppa_", "shpss_"),
    ),
    r"\w{20,}": ("npm_", "xai-"),
    r"[\w-]{10,}": ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
    r"[\w-]{16,}": ("dckr_oat_", "dckr_pat_", "glpat-", "hvb.", "hvs.", "nvapi-", "pypi-", "ya29."),
    r"[\w-]{24,}": ("pa-",),
    r"[\w-]{30,}": ("AIza",),
    r"[A-Z0-9]{16}\b": ("ABIA", "ACCA", "AKIA", "ASIA"),
    r"[0-9a-f]{32}\b": ("dapi",),
    r"[\w/]+": ("https://hooks.slack.com/services/",),
    r"[\w-]{16,}\.[\w-]{16,}": ("SG.",),
    r"(?<![\w-]eyJ)[\w-]{5,}+\.[\w-]{5,}+\.[\w-]*": ("eyJ",),  # JSON Web Tokens
    r"(?<=[?&]sig=)[\w%+/=-]{16,}": ("sig=",),  # Azure
}
_BEGIN = "-----BEGIN "
_KEYS = {
    _BEGIN: re.compile(
        rf"{_BEGIN}[A-Z0-9 ]{{0,40}}{_PRIVATE}(?:[^\"'-]++|-(?!----))*+-----END [A-Z0-9 ]{{0,40}}{_PRIVATE}"
        rf"|{_BEGIN}[A-Z0-9 ]{{0,40}}{_PRIVATE}[^\n\"']*(?:\s++[A-Za-z0-9+/=]{{40,}}+)*+"  # cut off
    ),
    **{head: re.compile(rf"\b{re.escape(head)}{tail}") for tail, heads in _TAILS.items() for head in heads},
}
"""How a key begins -> all of it: a text without any of the beginnings, as most are, is soon read."""
_USER_INFO = re.compile(
    r"(?<=://)(?:[^\s/@:'\"\[]{0,256}+:(?!\d{1,5}(?:[/?#\s\\\"']|$))[^\s@'\"]{0,256}+(?:@[^\s@'\"]{0,256}+(?=@))*+"
    r"|[^\s/@:'\"]{16,256}+)(?=@)"
)
_AUTHORIZATION = re.compile(
    r"""\b((?:bearer|basic)(?=\s+[\w.~+/=-]*?(?:\d|(?-i:[a-z][A-Z])))"""  # "a basic understanding" holds no key
    r"""|authorization\b\\?["']?\s*[=:]\s*\\?["']?(?:basic|bearer|token|apikey|digest|negotiate))"""
    r"""(\s+)(?!\[)[\w.~+/=-]{8,}""",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"""({_WORDS}(?:\\*["'])?\s*+[=:]\s*+(?:\\*["'])?+)(?!{_NONE})([^\s"'\\,;&}}\])\[$<*]{{6,}})""", re.IGNORECASE
)
_IN_QUOTES = re.compile(
    rf"""({_WORDS}(?:\\*["'])?\s*+[=:]\s*+)(?:(")(?!{_NOT})(?:[^"\\]|\\.){{6,256}}+(?=")"""
    rf"""|(')(?!{_NOT})(?:[^"'\\]|\\.){{6,256}}+(?=')|(\\+["'])(?!{_NOT})(?:[^"'\\]|\\\s){{6,256}}+(?=\4))""",
    re.IGNORECASE,
)
_NAMES_A_KEY = re.compile(rf"""{_WORDS}(?:\\*["'])?\s*+[=:]""", re.IGNORECASE)
_SCHEMES = ("bearer", "basic", "authorization")
_STEMS = ("passw", "passphrase", "secret", "key", "token", "pwd")
"""Each of the words holds one."""
_FOLDED = "\u017f\u212a\u0130"
"""Letters beyond ASCII that a pattern without case takes for one of it, or that grow in lower case."""
_BEFORE = len("account_")
"""How many letters before its stem a word begins at most."""
_HOLDS_A_KEY = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|(?:API|AUTH|ACCESS|ACCOUNT|ENCRYPTION|PRIVATE|SIGNING)KEY"
    r"|(?:^|_)(?:KEY|PASS|PAT)|_PWD)\d*(?:$|_(?:ID|BASE64|B64|HEX|VALUE|\d+)$)",  # PWD alone is the current folder
    re.IGNORECASE,
)
_SHORTEST = 8
"""Letters of a key or a variable's value, from which it is looked for: shorter ones are words."""
_read: set[str] = set()
"""The keys that this process has read, wherever they came from."""


def keep_secret(key: str) -> None:
    """Have a key that was read be `redacted` from now on, whatever it looks like."""
    if len(key) >= _SHORTEST:
        _read.add(key)


def redacted(text: str) -> str:
    """A text without what looks like a key, without those that were read, and without the values of variables whose
    names say that they hold one."""
    if secrets := _read | _of_the_environment():
        text = _looked_for(frozenset(secrets)).sub(REDACTED, text)
    for head, key in _KEYS.items():
        if head in text:
            text = key.sub(REDACTED, text)
    if "://" in text:
        text = _USER_INFO.sub(REDACTED, text)
    low = text.lower()
    is_plain = text.isascii() or not any(letter in text for letter in _FOLDED)
    if not is_plain or _stands(_AUTHORIZATION, text, low, _SCHEMES):
        text = _AUTHORIZATION.sub(rf"\1\2{REDACTED}", text)
    if is_plain and not _stands(_NAMES_A_KEY, low, low, _STEMS, _BEFORE):
        return text
    text = _IN_QUOTES.sub(rf"\1\2\3\4{REDACTED}", text)
    return _ASSIGNED.sub(rf"\1{REDACTED}", text)


def _stands(pattern: re.Pattern[str], text: str, low: str, stems: Sequence[str], before: int = 0) -> bool:
    """Whether a pattern stands in a text: looking around what it holds takes a tenth of reading a long text by it.

    Args:
        low: the text in lower case, letter by letter.
        stems: one of which the pattern holds.
        before: how many letters before that it begins at most.
    """
    for stem in stems:
        at = low.find(stem)
        while at >= 0:
            if any(pattern.match(text, start) for start in range(max(at - before, 0), at + 1)):
                return True
            at = low.find(stem, at + 1)
    return False


def redacted_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record of JSON, all that it holds `redacted`: as a file of it will be read."""
    told: dict[str, Any] = json.loads(redacted(json.dumps(record, ensure_ascii=False)))
    return told


def redact_logs() -> None:
    """Have what is logged in this process say nothing of keys, whoever logs it and wherever it is shown."""
    logging.setLogRecordFactory(_redacted_log_record)


def _redacted_log_record(*args: Any, **kwargs: Any) -> logging.LogRecord:
    record = logging.LogRecord(*args, **kwargs)
    if record.exc_info:
        traceback = logging.Formatter().formatException(record.exc_info)
        if (told := redacted(traceback)) != traceback:
            record.exc_info, record.exc_text = None, told
    try:
        said = record.getMessage()
    except (TypeError, ValueError):  # of arguments that do not fit, which logging itself tells
        return record
    if (told := redacted(said)) != said:
        record.msg, record.args = told, ()
    return record


def _of_the_environment() -> set[str]:
    values = (os.environ.get(name, "") for name in os.environ if holds_a_key(name))  # most are not even read
    return {value.strip() for value in values if len(value.strip()) >= _SHORTEST and not _is_path(value)}


@cache
def holds_a_key(variable: str) -> bool:
    """Whether the name of a variable says that it holds a key."""
    return bool(_HOLDS_A_KEY.search(variable))


@lru_cache(8)
def _looked_for(secrets: frozenset[str]) -> re.Pattern[str]:
    """Each as it is, as JSON writes it, in a text of JSON too, and as YAML breaks its lines."""
    forms = set(secrets)
    for _ in range(2):
        forms |= {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in forms for is_ascii in (True, False)}
    forms |= {secret.replace("'", "''") for secret in secrets}
    longest_first = sorted(forms, key=lambda form: (-len(form), form))  # one may hold another
    return re.compile("|".join(r"\s+".join(map(re.escape, form.split())) for form in longest_first))


def _is_path(value: str) -> bool:
    """Whether a variable names the file that holds a key, rather than the key."""
    return value[:1] in "/~." and os.path.exists(os.path.expanduser(value))  # noqa: PTH110, PTH111 - which take any text
