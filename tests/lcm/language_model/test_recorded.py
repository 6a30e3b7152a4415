import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import ModelError
from lcm.faults import counting
from lcm.language_model.replies import NoModel, Recorded


class Counting:
    """A model that counts how often it was asked, and with which settings."""

    def __init__(self, **identity: Any) -> None:
        self.identity = {"model": "counting", "temperature": 0.0, "max_tokens": 9, **identity}
        self.asked: list[dict[str, Any]] = []

    def reply(self, system: str, prompt: str, is_usable: object = None, **settings: Any) -> str:
        self.asked.append(settings)
        return f"reply {len(self.asked)} \ud800 来週"


def recorded(directory: Path, model: Any = None, mode: Any = "record") -> Recorded:
    return Recorded(model=model or Counting(), directory=str(directory), mode=mode)


def only_file(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


def test_a_kept_reply_that_its_reader_cannot_use_is_asked_for_again(tmp_path: Path) -> None:
    model = Counting()
    first = recorded(tmp_path, model).reply("s", "p", lambda _: False)
    assert recorded(tmp_path, model, "replay").reply("s", "p", lambda _: False) == first
    second = recorded(tmp_path, model).reply("s", "p", lambda reply: reply != first)
    assert (len(model.asked), second == first) == (2, False)
    assert recorded(tmp_path, model).reply("s", "p", lambda reply: reply != first) == second


def test_a_replay_gives_what_was_recorded_and_never_asks(tmp_path: Path) -> None:
    reply = recorded(tmp_path).reply("s", "p")
    silent = Counting()
    assert recorded(tmp_path, silent, "replay").reply("s", "p") == reply
    with pytest.raises(
        ModelError, match=r"^there is no recorded reply \w{64} in .*: run once with language_model.mode=record$"
    ):
        recorded(tmp_path, silent, "replay").reply("s", "another")
    assert silent.asked == []


def test_live_always_asks_and_keeps_nothing(tmp_path: Path) -> None:
    model = Counting()
    live = recorded(tmp_path, model, "live")
    assert live.reply("s", "p") != live.reply("s", "p")
    assert len(model.asked) == 2
    assert list(tmp_path.iterdir()) == []


def test_another_model_and_a_request_with_its_own_settings_have_their_own_replies(tmp_path: Path) -> None:
    model = Counting()
    plain = recorded(tmp_path, model).reply("s", "p")
    for change in ({"model": "other"}, {"temperature": 0.5}, {"max_tokens": None}):
        other = Counting(**change)
        recorded(tmp_path, other).reply("s", "p")
        assert len(other.asked) == 1
    for settings in ({"temperature": 0.25}, {"max_tokens": 7}, {"temperature": 1, "max_tokens": 7}):
        own = recorded(tmp_path, model).reply("s", "p", **settings)
        assert own != plain
        assert recorded(tmp_path, model, "replay").reply("s", "p", **settings) == own
    for settings in ({}, {"temperature": 0, "max_tokens": 9}):  # the model's own
        assert recorded(tmp_path, model, "replay").reply("s", "p", **settings) == plain


@pytest.mark.parametrize("mode", ["record", "live"])
def test_the_settings_of_a_request_reach_the_model(mode: str, tmp_path: Path) -> None:
    model = Counting()
    recorded(tmp_path, model, mode).reply("s", "p", temperature=0.25, max_tokens=7)
    recorded(tmp_path, model, mode).reply("s", "p")
    settings = [(asked.get("temperature"), asked.get("max_tokens")) for asked in model.asked]
    assert settings == [(0.25, 7), (None, None)]


def test_a_recording_keeps_its_name_when_a_request_has_no_settings(tmp_path: Path) -> None:
    recorded(tmp_path).reply("s", "p")
    asked = '{"max_tokens":9,"model":"counting","prompt":"p","system":"s","temperature":0.0}'
    assert only_file(tmp_path).name == f"{hashlib.sha256(asked.encode()).hexdigest()}.json"


def test_any_text_is_found_again_and_taken_for_no_other(tmp_path: Path) -> None:
    model = Counting()
    texts = ["\ud83d\ude00x", "\ud800", "\x00", "😀", "x" * 100_000]
    requests = [("a", "b"), ("ab", ""), ("", "ab"), ("b", "a"), *(("", text) for text in texts)]
    replies = [recorded(tmp_path, model).reply(*asked) for asked in requests]
    assert len(model.asked) == len(set(replies)) == len(requests)
    assert [recorded(tmp_path, model).reply(*asked) for asked in requests] == replies
    assert len(model.asked) == len(requests)
    assert recorded(tmp_path, model).identity == model.identity


def _with(key: str, value: Any) -> Callable[[bytes], bytes]:
    return lambda kept: json.dumps(json.loads(kept) | {key: value}).encode()


DAMAGE: list[Callable[[bytes], bytes]] = [
    lambda kept: b"",
    lambda kept: kept[:-20],
    lambda kept: b"\xff" + kept,
    lambda kept: b"[]",
    lambda kept: b"[" * 100_000,
    _with("reply", "another"),
    _with("reply", None),
    _with("sha256", 0),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_recorded_again_and_refused_in_a_replay(damage, tmp_path, caplog):
    model = Counting()
    recorded(tmp_path, model).reply("s", "p")
    path = only_file(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ModelError, match=r"^the recorded reply is damaged \w{64} in .*: run once with .*=record$"):
        recorded(tmp_path, model, "replay").reply("s", "p")
    with counting(incidents := Counter[str]()):
        assert recorded(tmp_path, model).reply("s", "p").startswith("reply 2")
    assert incidents == {"damaged recorded reply": 1}
    assert "is damaged; it is asked for again" in caplog.text
    assert recorded(tmp_path, model, "replay").reply("s", "p").startswith("reply 2")


def test_a_file_says_what_was_asked_and_what_came_back_and_answers_nothing_else(tmp_path: Path) -> None:
    reply = recorded(tmp_path).reply("s", "p")
    path = only_file(tmp_path)
    asked = {"model": "counting", "temperature": 0.0, "max_tokens": 9, "system": "s", "prompt": "p"}
    record = json.loads(path.read_bytes())
    assert record == asked | {"reply": reply, "sha256": record["sha256"]}
    recorded(tmp_path).reply("s", "q")
    (other,) = set(tmp_path.iterdir()) - {path}
    other.replace(path)
    with pytest.raises(ModelError, match="damaged"):
        recorded(tmp_path, mode="replay").reply("s", "p")


def test_without_a_directory_replies_lie_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    Recorded(model=Counting()).reply("s", "p")
    assert only_file(tmp_path / "replies").suffix == ".json"


def test_a_failure_to_ask_keeps_nothing(tmp_path: Path) -> None:
    class Failing(Counting):
        def reply(self, *_: Any, **__: Any) -> str:
            raise ModelError("no")

    with pytest.raises(ModelError, match=r"^no$"):
        recorded(tmp_path, Failing()).reply("s", "p")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"^\S+\.json cannot be (read|written) \(.*\)"):
        recorded(tmp_path / "file" / "below").reply("s", "p")


def test_a_bad_setting_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^mode must be one of: live, record, replay, got 'off'$"):
        recorded(tmp_path, mode="off")
    with pytest.raises(TypeError, match=r"^model must have reply\(\) and identity, got NoModel\(\)$"):
        recorded(tmp_path, NoModel())
