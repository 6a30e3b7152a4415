"""The laws of `LanguageModel`, over every YAML of its group; a server on this machine stands in for the real ones."""

from pathlib import Path

import pytest

from lcm.errors import ModelError
from lcm.protocols.models import LanguageModel
from pipelines.config import building
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.support.composing import composed
from tests.support.richest import once_a_class

ASKED = (("be short", "hello"), ("", "hello"), ("be short", "来週 \ud800"))
KEY = "sk-very-secret"


def built(choice: str, *settings: str) -> LanguageModel:
    overrides = [f"language_model={choice}", *settings]
    return building.build(composed(overrides), "language_model")


def settings_of(choice: str, url: str, mode: str) -> list[str]:
    if choice == "none":
        return []
    own = {"model.base_url": url, "model.api_key_env": "MODEL_KEY", "model.retries": 0, "mode": mode}
    return [f"language_model.{key}={value}" for key, value in own.items()]


def outcome(model: LanguageModel, asked: tuple[str, str]) -> str:
    try:
        return model.reply(*asked)
    except ModelError as error:
        assert "\n" not in str(error)
        assert KEY not in str(error)
        return f"ModelError: {error}"


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MODEL_KEY", KEY)


@pytest.mark.parametrize("choice", once_a_class("language_model"))
def test_with_recorded_replies_the_same_prompt_gives_the_same_reply_offline(choice: str) -> None:
    def answer(request: Asked) -> Answer:
        return Answer({"choices": [{"message": {"content": f"{len(server.asked)}: {request.body['messages'][-1]}"}}]})

    with serving(answer) as server:
        recording = built(choice, *settings_of(choice, server.url, "record"))
        first = [outcome(recording, asked) for asked in ASKED]
        assert [outcome(recording, asked) for asked in ASKED] == first
    offline = built(choice, *settings_of(choice, server.url, "replay"))
    assert [outcome(offline, asked) for asked in reversed(ASKED)] == first[::-1]
    assert choice == "none" or len(set(first)) == len(ASKED)


@pytest.mark.parametrize("choice", once_a_class("language_model"))
def test_no_reply_is_a_model_error_of_one_line(choice: str) -> None:
    with serving(lambda _: Answer({"error": {"message": f"not\nwith {KEY}"}}, status=400)) as server:
        model = built(choice, *settings_of(choice, server.url, "record"))
        with pytest.raises(ModelError) as raised:
            model.reply("", "hello")
    assert "\n" not in str(raised.value)
    assert KEY not in str(raised.value)
