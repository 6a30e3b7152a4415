"""Keys go where the user says and leave no trace: in no file of a run, no database, no cache, no log."""

import sqlite3
from pathlib import Path

import polars as pl
import pytest
import yaml

from lcm.redaction import REDACTED, redacted
from lcm.retrieval.embedder.hashing import Hashing
from pipelines.config.overrides import quoted
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.pipelines.conftest import QUICK, Lcm
from tests.pipelines.test_compact import chat
from tests.pipelines.test_compact_by_model import compact_by_model
from tests.support.looked_at import NO_CONTEXTS
from tests.support.secrets import SECRETS, told_in

HELD = {"GITHUB_TOKEN": "ordinary words that open a door", "AWS_SECRET_ACCESS_KEY": "more words that open another"}
PLANTED = [*(secret for _, secret in SECRETS.values()), *HELD.values()]
SHORT = tuple(setting for setting in QUICK if setting != "tracking=none")


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of choices that somebody handed over."""
    for name, value in HELD.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "theirs" / "experiment").mkdir(parents=True)
    return tmp_path / "theirs"


def preset(folder: Path, content: dict[str, object]) -> tuple[str, str]:
    """Write an experiment; gives the arguments that choose it."""
    text = yaml.safe_dump(content, sort_keys=False)
    (folder / "experiment" / "theirs.yaml").write_text(f"# @package _global_\n{text}")
    return f"hydra.searchpath=[file://{folder}]", "experiment=theirs"


def found(*places: Path) -> list[tuple[str, str]]:
    """Every secret that a file of these folders holds."""
    return [
        (secret, str(path))
        for place in places
        for path in place.rglob("*")
        if path.is_file()
        for content in [told_in(path)]
        for secret in PLANTED
        if secret.encode() in content
    ]


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_what_is_planted_in_a_configuration_is_written_nowhere(lcm: Lcm, searched: Path, tmp_path: Path) -> None:
    notes = {kind.replace(" ", "_").replace(",", ""): text for kind, (text, _) in SECRETS.items()}
    done = lcm("evaluate", *preset(searched, {"notes": notes}), *SHORT, NO_CONTEXTS)
    assert done.code == 0, done.stderr
    (receipt,) = (done.place / "runs").rglob("mlflow.json")
    assert (done.place / "mlflow.db").is_file()
    assert not found(done.place, tmp_path / "cache")
    assert not [secret for secret in PLANTED if secret in done.stdout + done.stderr]
    assert yaml.safe_load((receipt.parent / "config.yaml").read_text())["notes"]["password"] == "password=REDACTED"


@pytest.mark.slow
@pytest.mark.xdist_group("mlflow")
def test_what_is_planted_in_a_sweep_is_in_no_label_file_or_run_of_mlflow(lcm: Lcm, tmp_path: Path) -> None:
    said = quoted(" ".join(text for text, _ in SECRETS.values()))
    access = f"+scopes.agent_access.a=[{said}],[b]"
    folder = "sk-or-v1-0123456789abcdef0123456789abcdef"
    done = lcm("evaluate", "-m", access, f"hydra.sweep.dir={folder}/sweep", *SHORT, NO_CONTEXTS)
    assert done.code == 0, done.stderr
    points = done.place / folder / "sweep" / "points.parquet"
    assert REDACTED in str(pl.read_parquet(points).rows())
    planted = [secret for _, secret in SECRETS.values()]
    assert not [secret for secret in planted if secret in done.stdout + done.stderr]
    inside = [place for place in done.place.iterdir() if not place.name.startswith("sk-")]
    assert not found(*inside, points.parent, tmp_path / "cache")
    with sqlite3.connect(done.place / "mlflow.db") as database:
        named = [name for (name,) in database.execute("SELECT name FROM runs")]
    assert named
    assert not [name for name in named if redacted(name) != name]


@pytest.mark.parametrize("status", [200, 400])
def test_what_a_server_says_of_keys_is_written_nowhere(
    status: int, lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", PLANTED[0])
    said = " ".join(text for text, _ in SECRETS.values())
    body = {"choices": [{"message": {"content": said}}]} if status == 200 else {"error": {"message": said}}
    session = str(chat(tmp_path / "chat.jsonl", 12, units=200))
    with serving(lambda _: Answer(body, status=status)) as server:
        done = compact_by_model(lcm, server, session, "language_model.mode=record")
    assert server.asked
    assert not found(done.place, tmp_path / "cache")
    assert not [secret for secret in PLANTED if secret in done.stdout + done.stderr + caplog.text]


@pytest.mark.parametrize("status", [200, 400, 401])
def test_what_an_embedding_server_says_of_keys_is_written_nowhere(
    status: int, lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PLANTED[0])
    said = " ".join([PLANTED[0], *(text for text, _ in SECRETS.values())])

    def answer(request: Asked) -> Answer:
        if status != 200:
            return Answer({"error": {"message": said}}, status=status)
        rows = Hashing(dim=8).embed(request.body["input"], "document").tolist()
        data = [{"index": i, "embedding": row, "object": said} for i, row in enumerate(rows)]
        return Answer({"data": data, "model": said, "usage": {"prompt_tokens": said}})

    with serving(answer) as server:
        own = ("embedder=openai_compatible", f"embedder.base_url={server.url}/v1", "embedder.dimensions=8")
        done = lcm("evaluate", "system=hybrid", *QUICK, *own, NO_CONTEXTS)
    assert done.code == (0 if status == 200 else 2), done.stderr
    assert {request.headers["authorization"] for request in server.asked} == {f"Bearer {PLANTED[0]}"}
    assert not found(done.place, tmp_path / "cache")
    assert not [secret for secret in PLANTED if secret in done.stdout + done.stderr + caplog.text]


def test_a_preset_sends_no_text_to_an_embedding_server_that_the_user_did_not_name(
    lcm: Lcm, searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LCM_ALLOWED_HOSTS")
    embedder = {"base_url": "http://embeddings.example.org/v1", "api_key_env": None}
    chosen = preset(searched, {"defaults": [{"override /embedder": "openai_compatible"}], "embedder": embedder})
    done = lcm("evaluate", *chosen, "system=hybrid", *QUICK, "embedder=openai_compatible")
    assert done.code == 2
    assert "base_url: embeddings.example.org:80 is no host that you named" in done.stderr


def test_a_preset_sends_no_key_where_the_user_did_not_say(
    lcm: Lcm, searched: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("LCM_ALLOWED_HOSTS", "LCM_ALLOWED_KEYS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("JINA_API_KEY", "sk-of-the-user")
    with serving(lambda _: Answer({"results": []})) as server:
        endpoints = {"another": server.url, "jina": server.url}
        for name, variable in (("another", "AWS_SECRET_ACCESS_KEY"), ("jina", "JINA_API_KEY")):
            reranker = {"endpoint": endpoints[name], "api_key_env": variable}
            chosen = preset(searched, {"defaults": [{"override /reranker": "remote"}], "reranker": reranker})
            done = lcm("evaluate", *chosen, "ranking=lancedb_pro", *QUICK, place=name)
            assert not server.asked, name
            assert done.summary["incidents"]["rerank_missing_key"] > 0
            assert f"{variable} may not be read" in caplog.text or "is no host that you named" in caplog.text
        asked = lcm("evaluate", *chosen, "ranking=lancedb_pro", *QUICK, f"reranker.endpoint={server.url}", place="said")
    assert server.asked, asked.stderr
    assert {request.headers["authorization"] for request in server.asked} == {"Bearer sk-of-the-user"}


def test_a_preset_reads_no_variable_of_the_user(lcm: Lcm, searched: Path) -> None:
    for name in HELD:
        done = lcm("evaluate", *preset(searched, {"embedder": {"dim": f"${{oc.env:{name}}}"}}), *QUICK)
        assert done.code == 2
        assert f"${{oc.env:{name}}}: a configuration reads no variable" in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_preset_tracks_nowhere_that_the_user_did_not_say(
    lcm: Lcm, searched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LCM_ALLOWED_HOSTS")
    done = lcm("evaluate", *preset(searched, {"tracking": {"uri": "http://203.0.113.1:5000"}}), *SHORT)
    assert done.code == 2
    assert "tracking.uri: 203.0.113.1:5000 is no host that you named" in done.stderr
