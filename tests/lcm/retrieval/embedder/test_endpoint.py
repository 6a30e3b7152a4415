"""Embeddings of a server: asked for in batches, checked, cached as they come, and paid once whatever it does."""

import logging
import math
import pickle
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcm.errors import AuthError, ModelError, UnansweredError, UnrecordedReplyError
from lcm.language_model import openai_compatible
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.endpoint import Endpoint
from lcm.retrieval.embedder.hashing import Hashing
from tests.lcm.refusals import assert_refused
from tests.lcm.retrieval.reranker.loopback import Answer, Loopback, serving
from tests.support.embedding_server import EmbeddingServer, Fault

MODEL = Hashing(dim=16)
TEXTS = [f"text number {i}" for i in range(10)]
KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_KEY", KEY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that were waited; no test waits."""
    waited: list[float] = []
    monkeypatch.setattr(openai_compatible, "sleep", waited.append)
    return waited


def endpoint(server: Loopback | None = None, **settings: Any) -> Endpoint:
    url = "http://127.0.0.1:9/v1" if server is None else f"{server.url}/v1"
    own = {"model": "m", "dimensions": 16, "batch_size": 4, "workers": 1, "retries": 0, "api_key_env": "MODEL_KEY"}
    return Endpoint(**{"base_url": url, **own} | settings)


def test_batches_go_out_and_rows_come_back_as_the_model_gives_them() -> None:
    with serving(server := EmbeddingServer(MODEL)) as loopback:
        asking = endpoint(loopback, query_prefix="query: ", workers=3)
        rows, asked = asking.embed(TEXTS, "document"), list(loopback.asked)
        asking.embed(["why \ud800?"], "query")
    assert np.allclose(rows, MODEL.embed(TEXTS, "document"), atol=1e-6)
    assert {request.path for request in asked} == {"/v1/embeddings"}
    assert {request.headers["authorization"] for request in asked} == {f"Bearer {KEY}"}
    sent = sorted((request.body for request in asked), key=lambda body: body["input"])
    assert sent == [{"model": "m", "input": TEXTS[start : start + 4]} for start in (0, 4, 8)]
    assert loopback.asked[-1].body["input"] == ["query: why \ufffd?"]
    assert asking.spent == {"requests": 4, "texts": 11, "tokens": 10 * 3 + 3}
    assert server.answered.total() == 11


def test_the_server_is_told_of_dimensions_and_options_if_asked_to() -> None:
    with serving(EmbeddingServer(MODEL)) as loopback:
        asking = endpoint(loopback, request_dimensions=True, api_key_env=None, query_options={"input_type": "query"})
        for kind in ("query", "document"):
            asking.embed(["a"], kind)
    query, document = loopback.asked
    assert document.body == {"model": "m", "input": ["a"], "dimensions": 16}
    assert query.body == {**document.body, "input_type": "query"}
    assert "authorization" not in query.headers


def test_empty_texts_are_not_sent_and_have_a_row() -> None:
    with serving(EmbeddingServer(MODEL)) as loopback:
        rows = endpoint(loopback).embed(["", "a", " \n"], "document")
    assert [request.body["input"] for request in loopback.asked] == [["a"]]
    assert np.array_equal(rows[[0, 2]], np.eye(1, 16, dtype=np.float32).repeat(2, axis=0))


def test_tokens_are_estimated_where_the_server_does_not_count_them() -> None:
    def uncounted(answer: Answer, _: int) -> Answer:
        return Answer({"data": answer.body["data"]})

    with serving(EmbeddingServer(MODEL, uncounted)) as loopback:
        asking = endpoint(loopback)
        asking.embed(["eight ch"], "document")
    assert asking.spent["tokens"] == 8 / 4


def test_what_is_spent_is_said_before(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving(EmbeddingServer(MODEL)) as loopback:
        cached = CachedEmbedder(endpoint(loopback, price_per_million_tokens=1000.0), tmp_path)
        cached.embed(TEXTS[:3], "document")
        cached.embed(TEXTS, "document")
        cached.embed(["one more"], "query")
    first, second = (record.message for record in caplog.records)
    url = f"{loopback.url}/v1/embeddings"
    assert first == f"0 vectors of m are cached; asking {url} for 3: 1 request, about 12 tokens, price 0.012"
    assert second == f"3 vectors of m are cached; asking {url} for 7: 2 requests, about 28 tokens, price 0.028"
    assert cached.spent == {"requests": 4, "texts": 11, "tokens": 10 * 3 + 2, "cached": 3}


def test_several_at_once_pay_a_text_once(tmp_path: Path) -> None:
    with serving(server := EmbeddingServer(MODEL)) as loopback, ThreadPoolExecutor(4) as workers:
        rows = list(
            workers.map(lambda _: CachedEmbedder(endpoint(loopback), tmp_path).embed(TEXTS, "document"), range(8))
        )
    assert all(np.array_equal(one, rows[0]) for one in rows)
    assert set(server.answered.values()) == {1}


def test_all_embedders_of_a_model_and_server_count_what_is_spent_together() -> None:
    with serving(EmbeddingServer(MODEL)) as loopback:
        one, same, other = endpoint(loopback), endpoint(loopback), endpoint(loopback, revision="2")
        for asking in (one, same):
            asking.embed(["a"], "document")
    assert one.spent["texts"] == same.spent["texts"] == 2
    assert not other.spent


def test_a_replay_gives_what_is_cached_and_never_asks(tmp_path: Path) -> None:
    with serving(EmbeddingServer(MODEL)) as loopback:
        rows = CachedEmbedder(endpoint(loopback), tmp_path).embed(TEXTS, "document")
        replaying = CachedEmbedder(endpoint(loopback, mode="replay"), tmp_path)
        asked = len(loopback.asked)
        assert np.array_equal(replaying.embed([*TEXTS[::-1], ""], "document")[:10], rows[::-1])
        told = "1 texts of m are not in the cache: run once with embedder.mode=record"
        with pytest.raises(UnrecordedReplyError, match=told):
            replaying.embed([TEXTS[0], "another"], "document")
    assert len(loopback.asked) == asked
    assert replaying.timed is replaying
    assert CachedEmbedder(endpoint(), tmp_path).timed == endpoint()


def test_the_name_tells_what_changes_rows_and_nothing_else() -> None:
    same = {"base_url": "http://other/v1", "workers": 9, "batch_size": 9, "mode": "replay", "retries": 9}
    changing = {"model": "n", "revision": "2", "dimensions": 8, "request_dimensions": True, "query_prefix": "q"}
    changing |= {
        "query_options": {"task": "q"},
        "document_options": {"task": "q"},
        "document_prefix": "d",
        "max_tokens": 512,
        "overlap_tokens": 0,
    }
    assert {endpoint(**{key: value}).name for key, value in same.items()} == {endpoint().name}
    assert len({endpoint().name, *(endpoint(**{key: value}).name for key, value in changing.items())}) == 11


WORDS = {
    "English": " ".join(f"goats{i}" for i in range(300)),
    "no spaces": "".join(f"{i:04}" for i in range(300)),
    "Japanese": "".join(f"来週の火曜日{i}に" for i in range(60)),
    "mixed": "".join(f"a 山{i}😀 " for i in range(99)),
    "halves of surrogates": "".join(f"{i}\ud800" for i in range(99)),
}


@pytest.mark.parametrize("words", WORDS)
def test_a_long_text_is_read_in_windows_of_half_the_tokens_that_fit(words: str) -> None:
    text = WORDS[words]
    (pieces,) = endpoint(max_tokens=100, overlap_tokens=10, document_prefix="passage: ").windows([text])
    covered = 0
    for piece in pieces:
        start = text.index(piece)
        assert start <= covered
        covered = start + len(piece)
        cjk = sum("\u3040" < one < "\ud7ff" for one in piece)
        astral = sum(one > "\uffff" for one in piece)
        assert 0.25 * (len(piece) - cjk - astral) + 1.5 * cjk + 2 * astral <= 50
    assert covered == len(text)
    assert len(pieces) < len(text) / 8


def without_one(answer: Answer, _: int) -> Answer:
    return Answer({"data": answer.body["data"][:-2]})


def changed(position: int, change: Callable[[list[Any]], list[Any]]) -> Fault:
    """From a request on the vectors are others."""

    def fault(answer: Answer, number: int) -> Answer:
        data = [{**one, "embedding": change(one["embedding"])} for one in answer.body["data"]]
        return answer if number < position else Answer({"data": data})

    return fault


def failing(*answers: Answer) -> Fault:
    """The second request, and those after it, fail one after another; then all is well."""
    return lambda answer, number: answers[number - 1] if 0 < number <= len(answers) else answer


TWICE = Answer({"data": [{"index": 0, "embedding": [1.0] * 16}] * 4})
FAULTS: dict[str, tuple[Fault, type[ModelError], str]] = {
    "slow": (failing(Answer(stall_after=0)), UnansweredError, "did not answer within 0.2 s"),
    "429 for good": (failing(Answer(status=429)), ModelError, "answered with HTTP status 429"),
    "500": (failing(Answer(status=500)), ModelError, "answered with HTTP status 500"),
    "half a batch": (lambda a, n: without_one(a, n) if n else a, ModelError, "answered with 2 vectors to 4 texts"),
    "NaN": (
        changed(1, lambda row: [math.nan, *row[1:]]), ModelError, "answered with a vector that is not finite, or all 0",
    ),
    "zeros": (changed(1, lambda row: [0.0] * 16), ModelError, "answered with a vector that is not finite, or all 0"),
    "another width": (
        changed(1, lambda row: row[:8]), ModelError,
        "answered with vectors of 8 values, not 16: set embedder.dimensions=8, or embedder.request_dimensions=true",
    ),
    **{
        name: (
            changed(1, lambda row, change=change: change(row)), ModelError,
            "answered with vectors that are not lists of numbers of one length",
        )
        for name, change in {
            "words": lambda row: ["a", *row],
            "numbers as text": lambda row: [str(one) for one in row],
            "flags": lambda row: [True] * len(row),
            "a number too large": lambda row: [10**400, *row[1:]],
        }.items()
    },
    "HTML": (failing(Answer(b"<html>hello</html>")), ModelError, "answered with what is no JSON"),
    "half of it": (failing(Answer(b'{"data": [')), ModelError, "answered with what is no JSON"),
    "another answer": (failing(Answer({"models": []})), ModelError, "answered with 0 vectors to 4 texts"),
    "an index twice": (failing(TWICE), ModelError, "answered with vectors whose index is not each of 0 to 3 once"),
    "401": (
        failing(Answer({"error": {"message": f"bad {KEY}"}}, status=401)), AuthError,
        "answered with HTTP status 401: check the key in the environment variable MODEL_KEY",
    ),
    "404": (failing(Answer(status=404)), ModelError, "answered with HTTP status 404"),
}  # fmt: skip
"""What goes wrong from the second request on, and how it is told, behind the URL."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_in_a_line_and_no_text_is_paid_twice(fault: str, tmp_path: Path) -> None:
    wrong, kind, told = FAULTS[fault]
    with serving(server := EmbeddingServer(MODEL, wrong)) as loopback:
        asking = endpoint(loopback, timeout_seconds=0.2)
        with CachedEmbedder(asking, tmp_path) as cached, pytest.raises(ModelError) as raised:
            cached.embed(TEXTS, "document")
        server.fault = lambda answer, _: answer
        with CachedEmbedder(asking, tmp_path) as cached:
            rows = cached.embed(TEXTS, "document")
    assert type(raised.value) is kind
    assert str(raised.value) == f"{loopback.url}/v1/embeddings {told}"
    assert np.allclose(rows, MODEL.embed(TEXTS, "document"), atol=1e-6)
    assert server.answered == Counter(TEXTS)  # each once: nothing was lost, and nothing of the bad reply kept


def test_a_server_that_is_away_is_told_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^http://127\.0\.0\.1:9/v1/embeddings cannot be reached \(ConnectionError\)"):
        CachedEmbedder(endpoint(), tmp_path).embed(TEXTS, "document")


def test_a_busy_server_and_a_failing_one_are_asked_again(tmp_path: Path, pauses: list[float]) -> None:
    busy = [Answer(status=429, headers={"Retry-After": "7"}), *[Answer(status=500)] * 3]
    with serving(server := EmbeddingServer(MODEL, failing(*busy))) as loopback:
        CachedEmbedder(endpoint(loopback, retries=4), tmp_path).embed(TEXTS, "document")
    assert server.answered == Counter(TEXTS)
    assert pauses == [7.0, 2.0, 4.0, 8.0]


def test_rows_that_come_in_another_order_are_put_in_that_of_their_texts() -> None:
    with serving(EmbeddingServer(MODEL, lambda a, _: Answer({"data": a.body["data"][::-1]}))) as loopback:
        rows = endpoint(loopback).embed(TEXTS, "document")
    assert np.allclose(rows, MODEL.embed(TEXTS, "document"), atol=1e-6)


def test_replies_under_way_are_kept_when_another_fails(tmp_path: Path) -> None:
    with serving(server := EmbeddingServer(MODEL, failing(Answer(status=500)))) as loopback:
        asking = endpoint(loopback, workers=3)
        with pytest.raises(ModelError):
            CachedEmbedder(asking, tmp_path).embed(TEXTS, "document")
        CachedEmbedder(asking, tmp_path).embed(TEXTS, "document")
    assert server.answered == Counter(TEXTS)


def test_another_process_gets_the_same_embedder() -> None:
    assert pickle.loads(pickle.dumps(endpoint())) == endpoint()
    assert replace(endpoint(), model="n").name == endpoint(model="n").name


def test_settings_without_meaning_are_refused() -> None:
    refused = lambda **settings: endpoint(**settings)  # noqa: E731
    assert_refused(refused, "be a whole number >= 2", dimensions=[1, 2.5, True])
    assert_refused(refused, "be a whole number >= 64", max_tokens=63)
    assert_refused(refused, "be a whole number in [0, 2047]", overlap_tokens=[-1, 2048])
    assert_refused(refused, "be a whole number >= 1", batch_size=0, workers=0)
    assert_refused(refused, "be >= 0 or null", price_per_million_tokens=-1)
    assert_refused(refused, "be one of: record, replay", mode="live")
    with pytest.raises(ValueError, match="max_tokens 64 leaves no room for a text beside the prefixes"):
        endpoint(max_tokens=64, overlap_tokens=8, query_prefix="long " * 20)
    with pytest.raises(ValueError, match=r"base_url must end before any \? or #: /embeddings is added to it"):
        endpoint(base_url="http://a/v1?key=b")
