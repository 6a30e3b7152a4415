import logging
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from lcm.retrieval.reranker import Blend, Cosine, Remote, RerankItem, rerank_items, rerank_request
from tests.lcm.refusals import assert_refused
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


@pytest.mark.parametrize("provider", ["jina", "pinecone"])
def test_a_provider_is_asked_and_understood_in_its_own_shape(provider: str) -> None:
    headers, body = rerank_request(provider, KEY, "m", "what broke?", DOCUMENTS, 3)
    asked = batch()
    with serving(replying({"data" if provider == "pinecone" else "results": REPLY})) as server:
        after = remote(server, provider=provider, model="m")(ONE_QUERY, asked)
    (request,) = server.asked
    assert request.path == "/rerank"
    assert request.body == body
    assert {name.lower(): request.headers[name.lower()] for name in headers} == {
        name.lower(): value for name, value in headers.items()
    }
    assert ("authorization" in request.headers) == (provider != "pinecone")
    assert scores(after) == pytest.approx(BLENDED)
    assert list(scores(after)) == ["kettle", "goats", "tea"]
    assert after["reranker_score"].to_list() == [0.2, 0.9, None]
    assert not asked.incidents


def _by_query(query: str, request: Asked, answer: Answer) -> Answer:
    return answer if request.body["query"] == QUERIES[query] else Answer({"results": REPLY})


FAILURES = [
    *(("http_error", replying({"results": REPLY}, status=status)) for status in (400, 401, 404, 429, 500, 503)),
    ("http_error", replying(b"", status=307, headers={"Location": "/elsewhere"})),
    *(("unusable_reply", replying(body)) for body in (b"<html>", b"", b"\xff\xfe", [], None, b"[" * 100_000)),
    *(("unusable_reply", replying({"results": results})) for results in ([], [{"index": 0}])),
    *(("timeout", replying({"results": REPLY}, stall_after=sent)) for sent in (0, 10)),
]


def test_a_failure_leaves_the_query_to_the_cosine_and_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    def assert_left_to_cosine(kind: str, server: Loopback) -> None:
        asked = batch()
        caplog.clear()
        after = remote(server, timeout_ms=500)(ONE_QUERY, asked)
        assert scores(after) == pytest.approx(BY_COSINE)
        assert after.equals(FALLBACK(ONE_QUERY, batch()))
        assert asked.incidents == {f"rerank_{kind}": 1}
        warned = [record.levelno for record in caplog.records if record.name == "lcm.retrieval.reranker"]
        assert warned == [logging.WARNING]
        assert KEY not in caplog.text

    for kind, answer in FAILURES:
        with serving(answer) as server:
            assert_left_to_cosine(kind, server)
        assert len(server.asked) == 1
    assert_left_to_cosine("connection", server)  # which is gone


@pytest.mark.parametrize("value", [None, "", "  ", "with\nline", "schlüssel"])
def test_without_a_key_nothing_is_asked(value, monkeypatch, caplog):
    monkeypatch.delenv("RERANK_KEY")
    if value is not None:
        monkeypatch.setenv("RERANK_KEY", value)
    asked = batch()
    assert scores(remote()(TWO_QUERIES, asked)) == pytest.approx(BY_COSINE)
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


def test_only_the_window_is_sent_and_an_empty_frame_asks_nothing() -> None:
    with serving(replying({"results": [{"index": 0, "score": 0.5}]})) as server:
        after = remote(server, window=1)(TWO_QUERIES, batch())
        empty = remote(server)(TWO_QUERIES.clear(), batch())
    assert sorted(request.body["documents"][0] for request in server.asked) == sorted([TEXTS["kettle"], TEXTS["tea"]])
    assert [request.body["top_n"] for request in server.asked] == [1, 1]
    assert after["document_id"].to_list() == ["kettle", "tea"]
    assert empty.schema == after.schema == TWO_QUERIES.schema | {"reranker_score": pl.Float64()}


@pytest.mark.parametrize(("top_n", "told"), [(None, 3), (2, 2), (9, 3)])
def test_a_service_is_asked_back_for_no_more_than_it_is_sent(top_n: int | None, told: int) -> None:
    with serving(replying({"results": REPLY})) as server:
        remote(server, top_n=top_n)(ONE_QUERY, batch())
    assert [request.body["top_n"] for request in server.asked] == [told]


def test_answers_belong_to_their_queries_however_many_are_asked_at_once() -> None:
    names = [f"query {i}" for i in range(20)]
    rows = frame(*((name, document, 0.5, None) for name in names for document in ("kettle", "goats")))
    asked = batch(dict(zip(names, names, strict=True)), query_vectors=dict.fromkeys(names, (1.0, 0.0)))

    def answer(request: Asked) -> Answer:
        return Answer({"results": [{"index": 1, "relevance_score": int(request.body["query"].split()[1]) / 20}]})

    with serving(answer) as server:
        for workers in (1, 3, 50):
            after = remote(server, workers=workers)(rows, asked)
            by_query = after.filter(document_id="goats")["reranker_score"].to_list()
            assert by_query == [i / 20 for i in range(20)]
            assert after["query_id"].unique(maintain_order=True).to_list() == names


def test_a_netrc_does_not_replace_the_key(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with serving(replying({"results": REPLY})) as server:
        remote(server)(ONE_QUERY, batch())
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


def test_numbers_are_those_that_javascript_converts_to_a_finite_one() -> None:
    entries = [{"index": index, "relevance_score": "0.5"} for index in (" 2 ", "one", True, 10**400)]
    entries += [{"index": 0, "relevance_score": score} for score in ("nan", "Infinity", "1_0", {}, [0.5])]
    found = rerank_items("jina", {"results": entries})
    assert found == [RerankItem(2, 0.5), RerankItem(1, 0.5), RerankItem(0, 0.5)]


def test_the_first_place_with_a_usable_item_counts() -> None:
    in_results, in_data = {"results": [{"index": 0, "score": 0.4}]}, {"data": [{"index": 0, "score": 0.3}]}
    for provider, reply, score in (
        ("voyage", in_results | in_data, 0.3),
        ("jina", in_results | in_data, 0.4),
        ("jina", {"results": ["x", {}]} | in_data, 0.3),
        *(("dashscope", {"output": output} | in_results, 0.4) for output in (None, "")),
        *(("dashscope", {"output": output} | in_results, None) for output in ({}, [], {"results": []}, "text")),
    ):
        assert rerank_items(provider, reply) == (None if score is None else [RerankItem(0, score)])
    assert rerank_request("other", KEY, "m", "q", ["d"], 1) == rerank_request("jina", KEY, "m", "q", ["d"], 1)


def test_a_bad_setting_is_refused() -> None:
    assert_refused(remote, "be >= 1 or null", window=0)
    assert_refused(remote, "be one of: dashscope, jina, pinecone, siliconflow, tei, voyage", provider="cohere")
    assert_refused(remote, "be >= 500", timeout_ms=499)
    assert_refused(remote, "be >= 1 or null", top_n=0)
    assert_refused(remote, "be >= 1", workers=0)
    for endpoint, words in (("api.jina.ai", "begin with .*"), ("https://me:secret@api.jina.ai", "[^@]*")):
        with pytest.raises(ValueError, match=f"^endpoint must {words}$"):
            remote(endpoint=endpoint)
