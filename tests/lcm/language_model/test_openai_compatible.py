import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import AuthError, ModelError, UnansweredError
from lcm.language_model import openai_compatible as openai_compatible
from lcm.language_model.openai_compatible import OpenAiCompatible
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited; no test waits."""
    waited: list[float] = []
    monkeypatch.setattr(openai_compatible, "sleep", waited.append)
    return waited


def model(server: Loopback, **settings: Any) -> OpenAiCompatible:
    return OpenAiCompatible(base_url=f"{server.url}/v1", **{"api_key_env": "MODEL_KEY"} | settings)


def said(content: Any, **choice: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"role": "assistant", "content": content}, **choice}]}


def asked(*answers: Answer, **settings: Any) -> tuple[str | ModelError, list[Asked]]:
    """Return the reply, or the error, and the requests; the last answer is given for good."""
    left = list(answers)
    with serving(lambda _: left.pop(0) if len(left) > 1 else left[0]) as server:
        try:
            return model(server, **settings).reply("", "hello"), server.asked
        except ModelError as error:
            return error, server.asked


YES = Answer(said("yes"))


def test_system_and_prompt_go_out_and_the_first_choice_comes_back() -> None:
    with serving(lambda _: Answer(said(" yes\n"))) as server:
        asking = model(server, model="m", temperature=0.5, max_tokens=7)
        assert asking.reply("be short", "is 来週 \ud800 fine?") == "yes"
    (request,) = server.asked
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "is 来週 \ud800 fine?"}],
        "temperature": 0.5,
        "max_tokens": 7,
    }


def test_what_is_not_set_is_not_sent() -> None:
    with serving(lambda _: YES) as server:
        plain = OpenAiCompatible(base_url=f"{server.url}/v1/", api_key_env=None, max_tokens=None)
        assert plain.reply("", "hello") == "yes"
    (request,) = server.asked
    assert request.path == "/v1/chat/completions"
    assert "authorization" not in request.headers
    assert set(request.body) == {"model", "messages", "temperature"}
    assert request.body["messages"] == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_after_longer_and_longer_pauses(status, pauses, caplog):
    assert asked(*[Answer(status=status)] * 3, YES, retries=3)[0] == "yes"
    assert pauses == [1.0, 2.0, 4.0]
    assert len(caplog.records) == 3
    assert f"HTTP status {status}; trying again in 1 s" in caplog.text
    assert KEY not in caplog.text


def test_a_server_may_ask_for_another_pause_but_not_for_a_long_one(pauses: list[float]) -> None:
    wished = [Answer(status=429, headers={"Retry-After": after}) for after in ("7", "3600", "Fri, 01 Jan 2027", "-1")]
    assert asked(*wished, YES, retries=4)[0] == "yes"
    assert pauses == [7.0, 30.0, 4.0, 8.0]


@pytest.mark.parametrize("retries", [0, 2])
def test_the_last_try_is_the_last(retries: int, pauses: list[float]) -> None:
    error, requests = asked(Answer(status=503), retries=retries)
    assert str(error).endswith("HTTP status 503")
    assert (len(requests), len(pauses)) == (retries + 1, retries)


@pytest.mark.parametrize("stall_after", [0, 10])
def test_a_timeout_is_tried_again_and_then_said(stall_after: int, pauses: list[float]) -> None:
    with (
        serving(lambda _: Answer(said("yes"), stall_after=stall_after)) as server,
        pytest.raises(ModelError, match=r"^http://\S+/chat/completions did not answer within 0\.05 s$"),
    ):
        model(server, timeout_seconds=0.05, retries=1).reply("", "hello")
    assert pauses == [1.0]
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer({"error": {"message": "no such\nmodel"}}, status=404), "answered with HTTP status 404: no such model"),
        (Answer({"error": "too long"}, status=400), "answered with HTTP status 400: too long"),
        (Answer({"error": {"message": f"odd key {KEY}"}}, status=400), "answered with HTTP status 400"),
        (Answer(b"<html>", status=400), "answered with HTTP status 400"),
        (Answer([], status=400), "answered with HTTP status 400"),
        (
            Answer({"error": {"message": "Incorrect key sk-very-*****"}}, status=401),
            "answered with HTTP status 401: check the key in the environment variable MODEL_KEY",
        ),
        (Answer(b"", status=302, headers={"Location": "/other"}), "answered with HTTP status 302"),
        (Answer(b"{"), "answered with what is no JSON"),
        (Answer(b"[" * 100_000), "answered with what is no JSON"),
    ],
)
def test_what_cannot_be_mended_by_asking_again_is_said_at_once(answer, message, pauses, caplog):
    with serving(lambda _: answer) as server, pytest.raises(ModelError) as raised:
        model(server).reply("", "hello")
    assert str(raised.value) == f"{server.url}/v1/chat/completions {message}"
    assert len(server.asked) == 1
    assert pauses == []
    assert "very" not in caplog.text


def test_a_server_that_is_not_there_is_said_at_once(pauses: list[float]) -> None:
    with serving(lambda _: Answer()) as server:
        pass
    with pytest.raises(ModelError, match=r"cannot be reached \(ConnectionError\)$"):
        model(server).reply("", "hello")
    assert pauses == []


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY")
    error, requests = asked(YES)
    assert re.search("no key for .*: set the environment variable MODEL_KEY$", str(error))
    assert requests == []


@pytest.mark.parametrize("body", [None, {}, {"choices": ["x"]}, said(None), said(" \n"), said(["part"])])
def test_an_empty_reply_is_asked_for_once_more_with_less_reasoning(body, pauses, caplog):
    reply, (first, second) = asked(Answer(body), YES)
    assert reply == "yes"
    assert second.body == {**first.body, "reasoning_effort": "low"}
    assert "is empty; asking once more for low reasoning" in caplog.text
    error, requests = asked(Answer(body))
    assert isinstance(error, UnansweredError)
    assert str(error).endswith("/v1/chat/completions answered with an empty reply")
    assert (len(requests), pauses) == (2, [])


def test_a_length_that_is_used_up_by_thought_is_said() -> None:
    error, _ = asked(Answer(said("", finish_reason="length")), max_tokens=9)
    assert isinstance(error, UnansweredError)
    assert str(error).endswith("empty reply: max_tokens 9 was used up before it began")


HALF = Answer(said("half a", finish_reason="length"))


def test_a_cut_reply_gives_way_to_a_whole_one(caplog: pytest.LogCaptureFixture) -> None:
    assert asked(HALF, Answer(said("whole")))[0] == "whole"
    assert "is incomplete; asking once more" in caplog.text
    assert "ends at" not in caplog.text


@pytest.mark.parametrize("second", [Answer(said("")), Answer(status=400), Answer(status=401), Answer(b"{")])
def test_a_cut_reply_stands_where_asking_once_more_brings_nothing(second, caplog):
    assert asked(HALF, second, max_tokens=2)[0] == "half a"
    assert "ends at max_tokens 2" in caplog.text


def test_once_more_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    reply, requests = asked(HALF, max_tokens=2, low_reasoning_retry=False)
    assert (reply, len(requests)) == ("half a", 1)
    assert "ends at max_tokens 2" in caplog.text


@pytest.mark.parametrize("status", [400, 503])
def test_a_server_that_knows_no_reasoning_effort_leaves_the_reply_empty(status: int) -> None:
    error, _ = asked(Answer(said("")), Answer(status=status), retries=0)
    assert isinstance(error, UnansweredError)
    assert "empty reply" in str(error)


def test_a_request_may_have_settings_of_its_own() -> None:
    with serving(lambda _: YES) as server:
        asking = model(server, temperature=0.5, max_tokens=7)
        asking.reply("", "hello", temperature=0.0, max_tokens=3)
        asking.reply("", "hello")
        model(server, temperature=None, max_tokens=None).reply("", "hello")
    sent = [(request.body.get("temperature"), request.body.get("max_tokens")) for request in server.asked]
    assert sent == [(0.0, 3), (0.5, 7), (None, None)]
    assert "temperature" not in server.asked[2].body


REFUSALS = [
    Answer(status=401),
    Answer({"error": {"message": "no"}}, status=403),
    Answer({"error": {"code": "invalid_api_key", "message": f"bad {KEY}"}}, status=400),
    Answer({"error": {"message": f"API key not valid: {KEY}"}}, status=400),
    Answer({"error": {"code": 401, "message": "no auth"}}),
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_refusal_of_the_key_is_an_auth_error_and_is_not_tried_again(answer, pauses, caplog):
    error, requests = asked(answer)
    assert isinstance(error, AuthError)
    assert str(error).endswith(": check the key in the environment variable MODEL_KEY")
    assert (len(requests), pauses) == (1, [])
    assert KEY not in str(error) + caplog.text
    assert str(asked(Answer(status=401), api_key_env=None)[0]).endswith("HTTP status 401: it wants a key")


def test_a_key_that_is_refused_leaves_the_request_to_the_next(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "profiles.json").write_text('{"old": {"api_key": "sk-old"}, "older": {"api_key": "sk-older"}}')
    (tmp_path / "key").write_text("sk-file\n")

    def answer(request: Asked) -> Answer:
        return YES if request.headers["authorization"] == "Bearer sk-file" else Answer(status=401)

    with serving(answer) as server:
        asking = model(server, profiles=str(tmp_path / "profiles.json"), api_key_file=str(tmp_path / "key"))
        assert asking.reply("", "hello") == "yes"
    tried = [request.headers["authorization"].removeprefix("Bearer ") for request in server.asked]
    assert tried == ["sk-old", "sk-older", KEY, "sk-file"]
    assert caplog.text.count("trying the next key") == 3
    for key in tried:
        assert key not in caplog.text


def test_a_netrc_does_not_replace_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for variable, sent in (("MODEL_KEY", f"Bearer {KEY}"), (None, None)):
        _, (request,) = asked(YES, api_key_env=variable)
        assert request.headers.get("authorization") == sent


def test_the_identity_is_the_model_and_not_where_it_is_served() -> None:
    one = OpenAiCompatible(base_url="http://here/v1", temperature=0, timeout_seconds=1.0)
    other = OpenAiCompatible(base_url="https://there/v1", api_key_env=None, retries=0)
    assert one.identity == other.identity == {"model": "openai/gpt-oss-120b", "temperature": 0.0, "max_tokens": 2048}
    assert OpenAiCompatible(base_url="http://here", model="m").identity != one.identity


def test_a_bad_setting_is_refused() -> None:
    build = partial(OpenAiCompatible, base_url="http://host/v1")
    assert_refused(build, "be the name of a model of the server", model="")
    assert_refused(build, "name an environment variable, or be null", api_key_env="")
    assert_refused(build, "be null where profiles names no file", profile="p")
    assert_refused(build, "be in [0, 2] or null", temperature=[-0.1, math.nan])
    assert_refused(build, "be >= 1 or null", max_tokens=0)
    assert_refused(build, "be > 0", timeout_seconds=[0, math.nan])
    assert_refused(build, "be >= 0", retries=-1)
    for name, value, words in (
        *(("base_url", url, "begin with [^@]*") for url in ("localhost:8000/v1", "https://me:secret@host/v1")),
        ("api_key_env", KEY, "be the name of an environment variable, never a key"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must {words}$"):
            build(**{name: value})
