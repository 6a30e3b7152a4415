import logging
import pickle
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from lcm.retrieval.reranker.blending import Blend, RerankItem
from lcm.retrieval.reranker.cosine import Cosine
from lcm.retrieval.reranker.remote import Remote, rerank_items, rerank_request
from tests.lcm.retrieval.reranker.conftest import QUERIES, TEXTS, TWO_QUERIES, batch, frame, scores
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving

KEY = "sk-very-secret"
ONE_QUERY = TWO_QUERIES.filter(pl.col("query_id") == "q0")
FALLBACK = Cosine(window=None)
BY_COSINE = {"kettle": 0.7 * 0.8 + 0.3, "tea": 0.7 * 0.4 + 0.3 * 0.6, "goats": 0.7 * 0.5}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RERANK_KEY", KEY)


def remote(server: Loopback | None = None, **settings: Any) -> Remote:
    endpoint = "http://127.0.0.1:9/rerank" if server is None else f"{server.url}/rerank"
    return Remote(
        **{"blend": Blend(), "fallback": FALLBACK, "endpoint": endpoint, "api_key_env": "RERANK_KEY"} | settings
    )


def replying(body: Any, **settings: Any) -> Callable[[Asked], Answer]:
    return lambda _: Answer(body, **settings)


REPLY = [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.2}]
BLENDED = {
    "kettle": 0.95 * 0.8,  # 0.6 * 0.2 + 0.4 * 0.8 = 0.44 is below the floor of a strong hit
    "goats": 0.6 * 0.9 + 0.4 * 0.5,
    "tea": 0.95 * 0.4,  # not returned, a fair hit
}
DOCUMENTS = [TEXTS["kettle"], TEXTS["goats"], TEXTS["tea"]]
BEARER = {"authorization": f"Bearer {KEY}"}
SHAPES = {
    "jina": (BEARER, {"documents": DOCUMENTS, "top_n": 3}, {"results": REPLY}),
    "siliconflow": (BEARER, {"documents": DOCUMENTS, "top_n": 3}, {"results": REPLY}),
    "voyage": (BEARER, {"documents": DOCUMENTS, "top_k": 3}, {"data": REPLY}),
    "pinecone": (
        {"api-key": KEY, "x-pinecone-api-version": "2024-10"},
        {"documents": [{"text": text} for text in DOCUMENTS], "top_n": 3, "rank_fields": ["text"]},
        {"data": REPLY},
    ),
    "dashscope": (BEARER, {"input": {"documents": DOCUMENTS}}, {"output": {"results": REPLY}}),
    "tei": (BEARER, {"texts": DOCUMENTS}, REPLY),
}


@pytest.mark.parametrize("provider", SHAPES)
def test_a_provider_is_asked_and_understood_in_its_own_shape(provider: str) -> None:
    headers, body, reply = SHAPES[provider]
    if provider == "dashscope":
        body = {"model": "m", "input": {"query": "what broke?", **body["input"]}}
    else:
        body = {"query": "what broke?", **body} | ({} if provider == "tei" else {"model": "m"})
    asked = batch()
    with serving(replying(reply)) as server:
        after = remote(server, provider=provider, model="m")(ONE_QUERY, asked)
    (request,) = server.asked
    assert request.path == "/rerank"
    assert request.body == body
    assert request.headers["content-type"] == "application/json"
    assert {name: request.headers[name] for name in headers} == headers
    assert ("authorization" in request.headers) == (provider != "pinecone")
    assert scores(after) == pytest.approx(BLENDED)
    assert list(scores(after)) == ["kettle", "goats", "tea"]
    assert after["reranker_score"].to_list() == [0.2, 0.9, None]
    assert not asked.incidents


def _by_query(query: str, request: Asked, answer: Answer) -> Answer:
    return answer if request.body["query"] == QUERIES[query] else Answer({"results": REPLY})


FAILURES = {
    "http_error": [
        *(replying({"results": REPLY}, status=status) for status in (400, 401, 404, 429, 500, 503)),
        replying(b"", status=302, headers={"Location": "/elsewhere"}),
    ],
    "unusable_reply": [
        replying(body)
        for body in (
            b"<html>",
            b"",
            b"\xff\xfe",
            [],
            {"results": []},
            {"results": [{"index": 0}]},
            None,
            b"[" * 100_000,
        )
    ],
    "timeout": [replying({"results": REPLY}, stall_after=0), replying({"results": REPLY}, stall_after=10)],
}


@pytest.mark.parametrize(
    ("kind", "answer"), [pytest.param(kind, answer) for kind in FAILURES for answer in FAILURES[kind]]
)
def test_a_failure_leaves_the_query_to_the_cosine_and_is_counted(
    kind: str, answer: Callable[[Asked], Answer], caplog: pytest.LogCaptureFixture
) -> None:
    asked = batch()
    with serving(answer) as server:
        after = remote(server, timeout_ms=500)(ONE_QUERY, asked)
    assert scores(after) == pytest.approx(BY_COSINE)
    assert after.equals(FALLBACK(ONE_QUERY, batch()))
    assert asked.incidents == {f"rerank_{kind}": 1}
    assert len(server.asked) == 1
    assert [record.levelno for record in caplog.records if record.name == "lcm.retrieval.reranker.remote"] == [
        logging.WARNING
    ]
    assert KEY not in caplog.text


def test_a_server_that_is_not_there_leaves_the_query_to_the_cosine(caplog: pytest.LogCaptureFixture) -> None:
    with serving(replying(None)) as server:
        pass
    asked = batch()
    assert scores(remote(server)(ONE_QUERY, asked)) == pytest.approx(BY_COSINE)
    assert asked.incidents == {"rerank_connection": 1}
    assert KEY not in caplog.text


@pytest.mark.parametrize("value", [None, "", "  ", "with\nline", "schlüssel"])
def test_without_a_key_nothing_is_asked(
    value: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("RERANK_KEY")
    if value is not None:
        monkeypatch.setenv("RERANK_KEY", value)
    asked = batch()
    with serving(replying({"results": REPLY})) as server:
        assert scores(remote(server)(TWO_QUERIES, asked)) == pytest.approx(BY_COSINE)
    assert server.asked == []
    assert asked.incidents == {"rerank_missing_key": 2}
    assert "RERANK_KEY" in caplog.text
    assert not value or value.strip() == "" or value not in caplog.text


def test_a_kind_of_failure_is_logged_once_and_counted_always(caplog: pytest.LogCaptureFixture) -> None:
    asked = batch()
    with serving(replying(None, status=500)) as server:
        reranker = remote(server)
        for _ in range(3):
            reranker(TWO_QUERIES, asked)
    assert asked.incidents == {"rerank_http_error": 6}
    assert len(caplog.records) == 1


@pytest.mark.parametrize("failing", ["q0", "q1"])
def test_a_query_that_fails_leaves_the_others_to_the_service(failing: str) -> None:
    asked = batch()
    with serving(lambda request: _by_query(failing, request, Answer(status=500))) as server:
        after = remote(server)(TWO_QUERIES, asked)
    with serving(replying({"results": REPLY})) as server:
        answered = remote(server)(TWO_QUERIES, batch())
    fallen = FALLBACK(TWO_QUERIES, batch())
    for query_id in QUERIES:
        expected = fallen if query_id == failing else answered
        of_query = pl.col("query_id") == query_id
        assert after.filter(of_query).equals(expected.filter(of_query))
    assert after["query_id"].to_list() == ["q0"] * 3 + ["q1"] * 3
    assert asked.incidents == {"rerank_http_error": 1}


@pytest.mark.parametrize("workers", [1, 3, 50])
def test_answers_belong_to_their_queries_however_many_are_asked_at_once(workers: int) -> None:
    names = [f"query {i}" for i in range(20)]
    rows = frame(*((name, document, 0.5, None) for name in names for document in ("kettle", "goats")))
    asked = batch(dict(zip(names, names, strict=True)), query_vectors=dict.fromkeys(names, (1.0, 0.0)))

    def answer(request: Asked) -> Answer:
        return Answer({"results": [{"index": 1, "relevance_score": int(request.body["query"].split()[1]) / 20}]})

    with serving(answer) as server:
        after = remote(server, workers=workers)(rows, asked)
    assert after.filter(pl.col("document_id") == "goats")["reranker_score"].to_list() == [i / 20 for i in range(20)]
    assert after["query_id"].unique(maintain_order=True).to_list() == names


def test_only_the_window_is_sent() -> None:
    with serving(replying({"results": [{"index": 0, "score": 0.5}]})) as server:
        after = remote(server, window=1)(TWO_QUERIES, batch())
    assert sorted(request.body["documents"][0] for request in server.asked) == sorted([TEXTS["kettle"], TEXTS["tea"]])
    assert [request.body["top_n"] for request in server.asked] == [1, 1]
    assert after["document_id"].to_list() == ["kettle", "tea"]


def test_an_empty_frame_asks_nothing_and_keeps_its_types() -> None:
    with serving(replying(None)) as server:
        after = remote(server)(TWO_QUERIES.clear(), batch())
        full = remote(server)(TWO_QUERIES, batch())
    assert len(server.asked) == 2
    assert after.schema == full.schema == TWO_QUERIES.schema | {"reranker_score": pl.Float64()}


def test_a_netrc_does_not_replace_the_key(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with serving(replying({"results": REPLY})) as server:
        remote(server)(ONE_QUERY, batch())
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_it_travels() -> None:
    assert pickle.loads(pickle.dumps(remote())) == remote()


def test_an_unknown_provider_gets_the_shape_of_jina() -> None:
    assert rerank_request("other", KEY, "m", "q", ["d"], 1) == rerank_request("jina", KEY, "m", "q", ["d"], 1)


@pytest.mark.parametrize(
    ("index", "score", "expected"),
    [
        ("1", "0.5", RerankItem(1, 0.5)),
        (None, None, RerankItem(0, 0)),
        (0.5, -3, RerankItem(0.5, -3)),
        ("one", 1, None),
        (0, "bad", None),
        (0, "nan", None),
        (0, "Infinity", None),
        (0, "1_0", None),
        (0, 10**400, None),
        (0, {}, None),
        (True, [0.5], RerankItem(1, 0.5)),
        (" 2 ", "", RerankItem(2, 0)),
    ],
)
def test_numbers_are_those_that_javascript_converts_to(index: Any, score: Any, expected: Any) -> None:
    items = rerank_items("jina", {"results": [{"index": index, "relevance_score": score}]})
    assert items == (None if expected is None else [expected])


@pytest.mark.parametrize(
    ("provider", "reply", "score"),
    [
        ("jina", {"results": [{"index": 0, "score": 0.1, "relevance_score": 0.2}]}, 0.2),
        ("pinecone", {"data": [{"index": 0, "score": 0.1, "relevance_score": 0.2}]}, 0.1),
        ("tei", {"data": [{"index": 0, "score": "x", "relevance_score": 0.2}]}, 0.2),
        ("voyage", {"results": [{"index": 0, "score": 0.4}], "data": [{"index": 0, "score": 0.3}]}, 0.3),
        ("jina", {"results": [{"index": 0, "score": 0.4}], "data": [{"index": 0, "score": 0.3}]}, 0.4),
        ("jina", {"results": ["x", {}], "data": [{"index": 0, "score": 0.3}]}, 0.3),
        ("dashscope", {"output": None, "results": [{"index": 0, "score": 0.3}]}, 0.3),
        ("dashscope", {"output": "", "results": [{"index": 0, "score": 0.3}]}, 0.3),
        ("dashscope", {"output": {}, "results": [{"index": 0, "score": 0.3}]}, None),
        ("dashscope", {"output": [], "results": [{"index": 0, "score": 0.3}]}, None),
        ("dashscope", {"output": {"results": []}, "results": [{"index": 0, "score": 0.3}]}, None),
        ("dashscope", {"output": "text", "results": [{"index": 0, "score": 0.3}]}, None),
    ],
)
def test_the_first_place_with_a_usable_item_counts(provider: str, reply: Any, score: float | None) -> None:
    assert rerank_items(provider, reply) == (None if score is None else [RerankItem(0, score)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window must be >= 1 or null, got 0"),
        (
            {"provider": "cohere"},
            "provider must be one of: dashscope, jina, pinecone, siliconflow, tei, voyage, got 'cohere'",
        ),
        ({"timeout_ms": 499}, "timeout_ms must be >= 500, got 499"),
        ({"workers": 0}, "workers must be >= 1, got 0"),
        ({"endpoint": "api.jina.ai"}, "endpoint must begin with .*"),
        ({"endpoint": "https://me:secret@api.jina.ai"}, "endpoint must [^@]*"),
    ],
)
def test_a_bad_setting_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        remote(**settings)


def test_a_row_does_not_depend_on_the_queries_beside_it() -> None:
    with serving(replying({"results": REPLY})) as server:
        reranker = remote(server)
        alone = [reranker(part, batch()) for part in TWO_QUERIES.partition_by("query_id", maintain_order=True)]
        assert reranker(TWO_QUERIES, batch()).equals(pl.concat(alone))
