"""A key is read when a model is asked, and stands in nothing that is written down."""

from pathlib import Path

import pytest
from omegaconf import DictConfig

from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.building import identity
from tests.lcm.retrieval.reranker.loopback import Answer, Loopback, serving

KEY = "opens every door"
"""Of no known shape."""


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MODEL_VARIABLE", KEY)
    monkeypatch.setenv("LCM_ALLOWED_KEYS", f"MODEL_VARIABLE,{tmp_path}")
    (tmp_path / "profiles.json").write_text(f'{{"work": {{"api_key": "{KEY}"}}}}')
    (tmp_path / "key").write_text(KEY)


PLACES = {
    "profile": ["profiles=profiles.json", "profile=work", "api_key_env=null"],
    "variable": ["api_key_env=MODEL_VARIABLE"],
    "file": ["api_key_env=null", "api_key_file=key"],
}


def configured(server: Loopback, place: str) -> DictConfig:
    settings = [f"base_url={server.url}", "model=ada", *PLACES[place]]
    choices = [f"language_model.model.{setting}" for setting in settings]
    return composition.composed(["language_model=openai_compatible", *choices])


@pytest.mark.parametrize("place", PLACES)
def test_a_key_of_no_known_shape_that_a_server_quotes_is_told_nowhere(place, tmp_path, caplog):
    """Neither in the configuration nor in what is kept, though the server quotes it."""
    said = f"it {'is ' * 60} {KEY}"
    answers = [Answer({"content": [{"text": said}]}), Answer({"error": {"message": said}}, status=400)]
    with serving(lambda _: answers.pop(0)) as server:
        config = configured(server, place)
        model = building.build(config, "language_model")
        assert model.reply("", "hello").endswith(" REDACTED")
        with pytest.raises(LcmError) as raised:
            model.reply("", "hello again")
    assert not [word for word in KEY.split() if word in str(raised.value)]
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {KEY}"] * 2
    plain = building.resolved(config)
    (recording,) = (tmp_path / "cache" / "replies").iterdir()
    written = [building.resolved_text(plain), str(identity(plain)), repr(model), caplog.text, recording.read_text()]
    assert not [text for text in written if KEY in text]


@pytest.mark.parametrize(
    "override",
    [
        "+language_model.model.api_key=sk-very-secret",
        "+language_model.model.api_key='${oc.env:MODEL_VARIABLE}'",
        "language_model.model.api_key=sk-very-secret",
        "language_model.model.api_key_env=sk-very-secret",
    ],
)
def test_a_key_in_the_configuration_is_refused_without_showing_it(override: str) -> None:
    with pytest.raises(LcmError, match=r"^language_model\.model\.api_key") as raised:
        building.build(composition.composed(["language_model=openai_compatible", override]), "language_model")
    assert "sk-very-secret" not in str(raised.value)
    assert KEY not in str(raised.value)
