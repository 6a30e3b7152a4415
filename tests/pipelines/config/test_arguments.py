"""The arguments of a command: files are words whatever their names, and a misspelt key is no override."""

from pathlib import Path

import pytest

from lcm import consent
from lcm.errors import LcmError
from pipelines.config.arguments import consented, told_apart


def test_words_settings_and_overrides_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "into=a.jsonl"
    file.touch()
    told = told_apart([str(file), "into=x=y", "decay=weibull", "plain"], ("into",))
    assert told.words == (str(file), "plain")
    assert told.settings == {"into": "x=y"}
    assert told.overrides == ("decay=weibull",)


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("repairs=true", "no such key: 'repairs'; did you mean repair?"),
        ("x=1", "no such key: 'x'; choose from: repair"),
    ],
)
def test_a_key_that_a_command_does_not_have_is_refused(argument: str, problem: str) -> None:
    with pytest.raises(LcmError, match=problem.replace("?", r"\?")):
        told_apart([argument], ("repair",), is_configured=False)


def test_a_folder_of_a_model_is_trusted_as_a_package_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(consent.TRUST, raising=False)
    pickled = tmp_path / "model" / "pytorch_model.bin"
    with consented([f"trust=[{tmp_path}]", "arms=none"]) as rest:
        assert rest == ["arms=none"]
        assert consent.refused_pickle(pickled) is None
        assert not consent.is_trusted("os.system")
    assert consent.refused_pickle(pickled) is not None
    with pytest.raises(LcmError, match="is no package of yours"), consented([f"trust=[{tmp_path / 'none'}]"]):
        pass


def test_a_command_below_the_users_folder_may_be_named_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for argument in "external.command=[~/py,x,{add:y}]", "system=external external.command=[~/py,x,{add:y}]":
        with consented([argument]) as (rest,):
            assert rest == argument.replace("~", str(tmp_path))
            assert consent.refused_command([f"{tmp_path}/py", "x", "add=y"]) is None
