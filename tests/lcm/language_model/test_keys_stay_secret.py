"""A key is read when a model is asked, and stands in nothing that is written down."""

from pathlib import Path

import pytest

from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.building import identity
from tests.lcm.retrieval.reranker.loopback import Answer, serving

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MODEL_KEY", KEY)
    (tmp_path / "profiles.json").write_text(f'{{"work": {{"api_key": "{KEY}"}}}}')
    (tmp_path / "key").write_text(KEY)


@pytest.mark.parametrize(
    "place",
    [
        ["profiles=profiles.json", "profile=work", "api_key_env=null"],
        ["api_key_env=MODEL_KEY"],
        ["api_key_env=null", "api_key_file=key"],
    ],
)
def test_a_key_reaches_the_server_and_neither_the_configuration_nor_what_is_kept(
    place: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(lambda _: Answer({"content": [{"text": "yes"}]})) as server:
        settings = [f"base_url={server.url}", *place]
        config = composition.composed(
            ["language_model=openai_compatible", *(f"language_model.model.{setting}" for setting in settings)]
        )
        model = building.build(config, "language_model")
        assert model.reply("", "hello") == "yes"
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    plain = building.resolved(config)
    written = [building.resolved_text(plain), str(identity(plain)), repr(model), caplog.text]
    (recording,) = (tmp_path / "cache" / "replies").iterdir()
    for text in (*written, recording.read_text()):
        assert KEY not in text


@pytest.mark.parametrize(
    "override",
    [
        f"+language_model.model.api_key={KEY}",
        "+language_model.model.api_key='${oc.env:MODEL_KEY}'",
        f"language_model.model.api_key={KEY}",
        f"language_model.model.api_key_env={KEY}",
    ],
)
def test_a_key_in_the_configuration_is_refused_without_showing_it(override: str) -> None:
    with pytest.raises(LcmError, match=r"^language_model\.model\.api_key") as raised:
        building.build(composition.composed(["language_model=openai_compatible", override]), "language_model")
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "place", [["profiles=profiles.json"], ["api_key_env=MODEL_VARIABLE"], ["api_key_env=null", "api_key_file=key"]]
)
@pytest.mark.parametrize("status", [200, 400])
def test_a_key_of_no_known_shape_that_a_server_quotes_is_told_nowhere(
    place: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "opens every door"
    monkeypatch.setenv("MODEL_VARIABLE", key)
    monkeypatch.setenv("LCM_ALLOWED_KEYS", f"MODEL_VARIABLE,{tmp_path}")
    (tmp_path / "profiles.json").write_text(f'{{"work": {{"api_key": "{key}"}}}}')
    (tmp_path / "key").write_text(key)
    said = f"it {'is ' * 60} {key}"
    body = {"content": [{"text": said}]} if status == 200 else {"error": {"message": said}}
    with serving(lambda _: Answer(body, status=status)) as server:
        settings = [f"base_url={server.url}", "model=ada", *place]
        config = composition.composed(
            ["language_model=openai_compatible", *(f"language_model.model.{setting}" for setting in settings)]
        )
        model = building.build(config, "language_model")
        if status == 200:
            assert model.reply("", f"hello {place}").endswith(" REDACTED")
        else:
            with pytest.raises(LcmError) as raised:
                model.reply("", f"hello {place}")
            assert not [word for word in key.split() if word in str(raised.value)]
    assert server.asked[0].headers["authorization"] == f"Bearer {key}"
    assert not [file for file in (tmp_path / "cache").rglob("*.json") if key in file.read_text()]
