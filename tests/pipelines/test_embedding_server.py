"""One evaluation with a local embedder, and with the same behind a server: equal, and paid once whatever breaks."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.embedder.onnx import MiniLM
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.pipelines.conftest import QUICK, Lcm
from tests.support.embedding_server import EmbeddingServer
from tests.support.looked_at import NO_CONTEXTS

SYSTEM = ("system=hybrid", *QUICK, NO_CONTEXTS, "extraction=passages", "extraction.passage_characters=600")


def behind(url: str, *more: str) -> tuple[str, ...]:
    """Choose the server at a URL, which embeds in 384 numbers and windows that hold every text of the sample."""
    own = {"base_url": f"{url}/v1", "model": "m", "dimensions": 384, "api_key_env": "null", "retries": 0}
    return *SYSTEM, "embedder=openai_compatible", *(f"embedder.{key}={value}" for key, value in own.items()), *more


@pytest.fixture(autouse=True)
def on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def ranked(folder: Path) -> list[tuple[object, ...]]:
    run = pl.read_parquet(next(folder.rglob("run.parquet")))
    return run.select("query_id", "rank", "document_id").rows()


def test_an_evaluation_is_the_same_as_with_the_local_model(lcm: Lcm, minilm_cache: Path) -> None:
    local = lcm("evaluate", *SYSTEM, "embedder=minilm", "embedder.max_tokens=512", place="local")
    server = EmbeddingServer(MiniLM(max_tokens=512))
    with serving(server) as loopback:
        served = lcm("evaluate", *behind(loopback.url, "embedder.price_per_million_tokens=2"), place="served")
        asked = server.asked
        again = lcm(
            "evaluate", *behind(loopback.url, "embedder.mode=replay", "measures.latency.queries=2"), place="again"
        )
    assert (local.code, served.code, again.code) == (0, 0, 0), served.stderr + again.stderr
    assert ranked(served.place) == ranked(local.place)
    assert ranked(again.place) == ranked(local.place)
    assert set(server.answered.values()) == {1}
    assert server.asked == asked
    tokens = sum(len(text.split()) for text in server.answered)
    spent = served.summary["timing"]["embedding"]
    assert spent["requests"] == asked
    assert (spent["texts"], spent["tokens"]) == (len(server.answered), tokens)
    assert spent["price"] == pytest.approx(2e-6 * tokens)
    assert again.summary["timing"]["embedding"].keys() == {"cached"}
    assert "the times of live queries are those of looking their vectors up in the cache" in again.stdout
    assert f"{len(server.answered)} texts asked in {asked} requests, {tokens:,} tokens, price" in served.stdout
    sides = [str(next(one.place.rglob("summary.json")).parent) for one in (local, served)]
    compared = lcm("compare", *sides, "tracking=none", place="compared")
    prices = [line.split("│")[3].strip() for line in compared.stdout.splitlines() if "price of all vectors" in line]
    assert sorted(prices) == ["0", f"{served.summary['counts']['embedding_price']:.4g}"]


def test_what_is_killed_in_the_middle_goes_on_without_paying_twice(lcm: Lcm, tmp_path: Path) -> None:
    server = EmbeddingServer(Hashing())
    killed = list[subprocess.Popen[bytes]]()

    def answer(request: Asked) -> Answer:
        if killed and server.asked == 7:
            os.kill(killed[0].pid, signal.SIGKILL)
            killed[0].wait()
            server.asked += 1
            return Answer(status=500)
        return server(request)

    with serving(answer) as loopback:
        command = [sys.executable, "-m", "lcm", "evaluate", *behind(loopback.url, "embedder.workers=1")]
        (tmp_path / "killed").mkdir()
        surroundings = {**os.environ, "LCM_CACHE_DIR": str(tmp_path / "cache")}
        killed.append(
            subprocess.Popen(
                command, cwd=tmp_path / "killed", env=surroundings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        assert killed[0].wait(timeout=120) == -signal.SIGKILL
        paid = server.answered.total()
        finished = lcm("evaluate", *behind(loopback.url), place="finished")
    assert finished.code == 0, finished.stderr
    assert paid > 0
    assert server.answered == Counter(dict.fromkeys(server.answered, 1))
    assert finished.summary["timing"]["embedding"]["texts"] == server.answered.total() - paid


def test_a_server_that_is_away_ends_the_run_in_a_line_and_no_replay_asks(lcm: Lcm) -> None:
    away = lcm("evaluate", *behind("http://127.0.0.1:9"), place="away")
    assert away.code == 2
    assert "http://127.0.0.1:9/v1/embeddings cannot be reached (ConnectionError)" in away.stderr.splitlines()[-1]
    replay = lcm("evaluate", *behind("http://127.0.0.1:9", "embedder.mode=replay"), place="replay")
    assert replay.code == 2
    assert "embedder.mode=replay asks nothing, and" in replay.stderr.splitlines()[-1]
