import json
from pathlib import Path
from typing import Any

import pytest

from lcm.errors import AuthError
from lcm.language_model.openai_compatible import credentials

URL = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = {"work": {"api_key": " sk-work "}, "none": {}, "odd": "sk-odd", "home": {"api_key": "sk-home"}}
    (tmp_path / "profiles.json").write_text(json.dumps(profiles))
    (tmp_path / "key").write_text("sk-file\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_KEY", "sk-environment")


def keys(
    profiles: str | None = None, profile: str | None = None, env: str | None = None, file: str | None = None
) -> list[str | None]:
    return [credential.key for credential in credentials(URL, profiles, profile, env, file)]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (("profiles.json", "home", "MODEL_KEY", "key"), ["sk-home", "sk-environment", "sk-file"]),
        (("profiles.json", None, "MODEL_KEY"), ["sk-work", "sk-home", "sk-environment"]),  # every profile, in order
        ((), [None]),
    ],
)
def test_profiles_come_first_then_the_environment_then_the_file(where: Any, found: list[str | None]) -> None:
    assert keys(*where) == found


@pytest.mark.parametrize("name", ["none", "odd", "nobody"])
def test_a_profile_without_a_key_leaves_it_to_the_next_place(name: str, caplog: pytest.LogCaptureFixture) -> None:
    assert keys("profiles.json", name, "MODEL_KEY") == ["sk-environment"]
    assert f"no key of the profile '{name}'" in caplog.text
    assert "sk-" not in caplog.text


def test_a_key_is_tried_once_and_where_it_is_found_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", "sk-home")
    found = credentials(URL, "profiles.json", None, "MODEL_KEY", "key")
    assert [credential.key for credential in found] == ["sk-work", "sk-home", "sk-file"]
    assert found[1].source == "the profile 'home'"


def test_a_file_that_is_not_there_leaves_it_to_the_next_place_and_is_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert keys("sk-by-mistake", None, "MODEL_KEY", "sk-by-mistake") == ["sk-environment"]
    assert caplog.text.count("cannot be read (No such file or directory); looking elsewhere") == 2
    assert "sk-" not in caplog.text


def test_where_no_place_has_a_key_all_are_named() -> None:
    variable = "the environment variable UNSET"
    for where, message in (
        ((None, None, "UNSET"), f"set {variable}"),
        (("missing",), "set a profile"),
        (("missing", None, "UNSET", "gone"), f"set a profile or {variable} or the file that api_key_file names"),
    ):
        with pytest.raises(AuthError, match=f"^{message}$"):
            keys(*where)


@pytest.mark.parametrize("text", ["sk-secret", '["sk-secret"]', "[" * 100_000])
def test_a_file_of_profiles_that_is_none_is_an_error_without_its_words(text: str, tmp_path: Path) -> None:
    (tmp_path / "profiles.json").write_text(text)
    with pytest.raises(AuthError, match="must be a JSON object") as raised:
        keys("profiles.json", None, "MODEL_KEY")
    assert "sk-" not in str(raised.value)


def test_a_key_that_is_no_text_is_none_and_one_that_no_header_can_carry_is_named_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    assert keys(env="MODEL_KEY", file="key") == ["sk-environment"]
    (tmp_path / "key").write_text("sk-a\nsk-b")
    with pytest.raises(AuthError, match=r"^the file that api_key_file names holds characters that no header") as raised:
        keys(file="key")
    assert "sk-" not in str(raised.value)


def test_a_credential_does_not_show_its_key() -> None:
    assert "sk-" not in repr(credentials(URL, "profiles.json", None, "MODEL_KEY", "key"))
