"""What looks like a key leaves no trace in what is written down; ordinary words stay."""

import io
import json
import logging
import time

import pytest
import yaml

from lcm.errors import ModelError
from lcm.language_model.openai_compatible import Credential
from lcm.redaction import REDACTED, redact_logs, redacted
from tests.support.secrets import SECRETS


def test_of_every_kind_none_is_left() -> None:
    assert len(SECRETS) >= 36
    left = []
    for kind, (text, secret) in SECRETS.items():
        for told in (
            text,
            f"answered: {text}.",
            json.dumps({"a": text, "b": 1}),
            yaml.safe_dump({"client_secret": text, "b": 1}),
        ):
            if secret in redacted(told):
                left.append((kind, redacted(told)))
            if redacted(redacted(told)) != redacted(told):
                left.append((kind, "not the same again"))
        if json.loads(redacted(json.dumps({"a": text, "b": 1})))["b"] != 1:
            left.append((kind, "no JSON"))
        if yaml.safe_load(redacted(yaml.safe_dump({"a": text, "b": 1})))["b"] != 1:
            left.append((kind, "no YAML"))
    assert not left


def test_ordinary_words_stay() -> None:
    texts = [
        "api_key_env: OPENROUTER_API_KEY",
        "set the environment variable JINA_API_KEY",
        "max_tokens: 2048",
        "token_estimator: utf16_units",
        '"apiKey": "${EMBED_KEY}"',
        "password: null",
        "LCM_ALLOWED_KEYS=MY_KEY",
        "sqlite:///mlflow.db",
        "http://127.0.0.1:8000/v1",
        "fusion.dense_weight=0.7",
        "mask-language, task-force-one",
        "git+ssh://git@github.com/ada/notes, http://127.0.0.1:8000/v1?to=ada@example.org",
        '{"password": "${A_PASSWORD}", "asks": ["the password:", 1234567]}',
        "40a8bd0012c4e5f6a7b8c9d0e1f2a3b4c5d6e7f8",
        "a basic understanding of basic authentication, and the bearer certificate",
    ]
    assert list(map(redacted, texts)) == texts


@pytest.mark.parametrize(
    "piece",
    [
        *("a-", "eyJ-", "eyJaaaaa.", "sk-", "SG.", "token-", "token:", "password", "password=", "?sig="),
        *("://", "://a", "://a:", "://a:b@", "bearer ", "authorization: token ", "-----BEGIN ", " "),
        *('password="a b c d ', "-----BEGIN PRIVATE KEY-----\n"),
    ],
)
def test_what_is_made_to_take_time_takes_little(piece: str) -> None:
    """Quadratic patterns took ten seconds for a tenth of it."""
    started = time.process_time()
    redacted(piece * (100_000 // len(piece)))
    assert time.process_time() - started < 2


def test_the_value_of_a_variable_that_holds_a_key_is_told_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEBODYS_TOKEN", "just some words")
    monkeypatch.setenv("SHORT_KEY", "word")
    assert redacted("it said: just some words, word for word") == "it said: REDACTED, word for word"
    monkeypatch.setenv("ANOTHER_TOKEN", "just some words and more")  # the longest is taken out first
    assert redacted("it said: just some words and more") == "it said: REDACTED"


HOLDS_A_KEY = (
    "PGPASSWORD OPENAI_APIKEY OPENAI_API_KEY_2 AUTHTOKEN my_token DB_PASS MYSQL_PWD GITHUB_PAT SECRET_VALUE"
    " AWS_ACCESS_KEY_ID npm_password"
)
HOLDS_NONE = (
    "PATH PWD OLDPWD COMPASS KEYBOARD_LAYOUT XKB_DEFAULT_LAYOUT SSH_AUTH_SOCK SSH_ASKPASS MONKEY MAX_TOKENS"
    " TOKENIZERS_PARALLELISM LCM_ALLOWED_KEYS HF_TOKEN_PATH PATTERN SPAT"
)


@pytest.mark.parametrize("value", ["open sesame!", 'a"b\\c"d/e', "clé-des-champs", "it's open sesame"])
def test_a_variable_that_holds_a_key_is_known_by_its_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"a": f"it said {value}", "b": 1}
    nested = json.dumps({"text": json.dumps(record)})
    texts = (f"it said {value}.", json.dumps(record), json.dumps(record, ensure_ascii=False), nested)
    for name in HOLDS_A_KEY.split():
        monkeypatch.setenv(name, value)
        for told in texts:
            assert redacted(told) == told.replace(told[told.index("said ") + 5 : _end(told)], REDACTED), name
        folded = yaml.safe_dump(record, width=12, allow_unicode=True)
        assert yaml.safe_load(redacted(folded))["a"] == "it said REDACTED", name
        monkeypatch.delenv(name)


def _end(told: str) -> int:
    """Where the value ends in what was told of it."""
    return min(place for place in (told.rfind(end) for end in ('\\", ', '", ', ".")) if place > 0)


def test_a_variable_that_holds_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in HOLDS_NONE.split():
        with monkeypatch.context() as set_here:
            set_here.setenv(name, "ordinary words")
            assert redacted("these are ordinary words") == "these are ordinary words", name


def test_a_key_that_was_read_is_told_nowhere() -> None:
    Credential("a file", "opens all doors 7")
    Credential("a file", "doors")
    assert redacted("it said: opens all doors 7, doors") == "it said: REDACTED, doors"


def test_an_error_shows_no_key() -> None:
    assert ModelError("answered sk-abcdefgh", 7).args == ("answered REDACTED", 7)


def test_what_is_logged_by_whomever_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, and handlers that others have set up."""
    monkeypatch.setattr(logging, "_logRecordFactory", logging.LogRecord)
    written = io.StringIO()
    logger = logging.Logger("of a library")
    logger.addHandler(logging.StreamHandler(written))
    redact_logs()
    for text, _ in SECRETS.values():
        logger.warning("it said: %s (%d %%)", text, 7)
    assert written.getvalue().count(REDACTED) >= len(SECRETS)
    assert written.getvalue().count("(7 %)") == len(SECRETS)
    assert not [secret for _, secret in SECRETS.values() if secret in written.getvalue()]
    try:
        int(next(iter(SECRETS.values()))[0])
    except ValueError:
        logger.exception("it failed")
    assert written.getvalue().endswith("ValueError: invalid literal for int() with base 10: 'the key is REDACTED'\n")
    assert not [secret for _, secret in SECRETS.values() if secret in written.getvalue()]
    logger.warning("nothing %s", "hidden")
    assert written.getvalue().endswith("nothing hidden\n")
