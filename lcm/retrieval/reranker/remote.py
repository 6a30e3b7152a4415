"""A cross-encoder behind HTTP; the cosine stands in whenever it does not answer."""

import logging
import math
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

import polars as pl
import requests

from lcm.checks import check_choice, check_range
from lcm.consent import refused_key
from lcm.javascript import to_number
from lcm.language_model.openai_compatible import is_timeout, without_netrc
from lcm.protocols.retrieval import Batch
from lcm.redaction import keep_secret
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.reranker.blending import Blend, RerankItem, beyond, check_window, first, with_replies
from lcm.retrieval.reranker.cosine import Cosine

_log = logging.getLogger(__name__)

Provider = Literal["jina", "siliconflow", "voyage", "pinecone", "dashscope", "tei"]

_LOCATIONS: dict[str, tuple[str, ...]] = {
    "jina": ("results", "data"),
    "siliconflow": ("results", "data"),
    "voyage": ("data", "results"),
    "pinecone": ("data", "results"),
    "tei": ("", "results", "data"),
}
"""Where a reply may hold its items, in the order of looking; the empty text is the reply itself."""
_SCORE_KEYS = {"pinecone": ("score", "relevance_score"), "tei": ("score", "relevance_score")}
_OTHER_SCORE_KEYS = ("relevance_score", "score")


class _Failure(NamedTuple):
    """Why a query has no reply; never holds the key."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Remote:
    """Ask a reranking service to score each query's candidates, all of them in one request, then blend.

    Whatever goes wrong with a query (missing_key, timeout, connection, http_error, unusable_reply) leaves it to
    `fallback`: counted in the batch as rerank_KIND, logged once a kind. Puts the service's score into reranker_score,
    null where it returned none.

    Source: memory-lancedb-pro, rerankResults, buildRerankRequest and parseRerankResponse.
    """

    is_online: ClassVar[bool] = True
    reads_unit_scores: ClassVar[bool] = True
    needs_vectors: ClassVar[bool] = True
    blend: Blend
    fallback: Cosine
    provider: Provider = "jina"
    """Whose shapes of request and reply."""
    endpoint: str = "https://api.jina.ai/v1/rerank"
    model: str = "jina-reranker-v3"
    """tei is not told."""
    api_key_env: str = "JINA_API_KEY"
    """The environment variable with the key; without a key nothing is asked."""
    timeout_ms: int = 5000
    """Of each wait: for the connection, and for the next bytes of the reply."""
    window: int | None = 40
    """How many candidates of a query are kept and sent; None = all."""
    top_n: int | None = None
    """How many of them the service is asked to return at most; None = all. dashscope and tei are not told."""
    workers: int = 4
    """How many queries are asked at once."""
    _warned: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_window(self.window)
        check_choice(self, provider=Provider)
        address = urlsplit(self.endpoint)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ValueError("endpoint must begin with http:// or https://, name a host, and hold no user or password")
        check_range(self, "timeout_ms", ge=500)
        check_range(self, "workers", ge=1)
        check_range(self, "top_n", ge=1, or_null=True)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are kept."""
        return beyond(frame, self.window, batch)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = first(frame, self.window, batch)
        if kept.is_empty():
            return self.fallback(kept, batch)
        asked = _asked(kept, batch)
        outcomes = dict(zip(asked["query_id"], self._ask_all(asked), strict=True))
        failures = {query: outcome for query, outcome in outcomes.items() if isinstance(outcome, _Failure)}
        replies = {query: outcome for query, outcome in outcomes.items() if not isinstance(outcome, _Failure)}
        self._report(list(failures.values()), batch)
        if not failures:
            return with_replies(kept, replies, self.blend)
        is_failed = pl.col("query_id").is_in(list(failures))
        both = [
            with_replies(kept.filter(~is_failed), replies, self.blend),
            self.fallback(kept.filter(is_failed), batch),
        ]
        place = {query: i for i, query in enumerate(outcomes)}
        return pl.concat([part for part in both if not part.is_empty()]).sort(
            pl.col("query_id").replace_strict(place, return_dtype=pl.Int64), maintain_order=True
        )

    def _report(self, failures: Sequence[_Failure], batch: Batch) -> None:
        details = {failure.kind: failure.detail for failure in reversed(failures)}
        for kind, count in Counter(failure.kind for failure in failures).items():
            batch.incidents[f"rerank_{kind}"] += count
            if kind not in self._warned:
                self._warned.add(kind)
                _log.warning(
                    "reranker %s: %s; the cosine stands in, counted as rerank_%s", self.provider, details[kind], kind
                )

    def _ask_all(self, asked: pl.DataFrame) -> list[list[RerankItem] | _Failure]:
        """The outcome of each query, in order."""
        if refused := refused_key(self.api_key_env, self.endpoint):
            return [_Failure("missing_key", "; ".join(refused))] * len(asked)
        key = os.environ.get(self.api_key_env, "").strip()
        keep_secret(key)
        if not key:
            return [_Failure("missing_key", f"set the environment variable {self.api_key_env}")] * len(asked)
        if not (key.isascii() and key.isprintable()):
            detail = f"{self.api_key_env} holds characters that no header can carry"
            return [_Failure("missing_key", detail)] * len(asked)
        pairs = list(asked.select("query", "documents").iter_rows())
        if len(pairs) == 1:
            return [self._ask(key, *pairs[0])]
        with ThreadPoolExecutor(min(self.workers, len(pairs)), thread_name_prefix="rerank") as threads:
            return list(threads.map(lambda pair: self._ask(key, *pair), pairs))

    def _ask(self, key: str, query: str, documents: list[str]) -> list[RerankItem] | _Failure:
        top_n = min(len(documents), self.top_n or len(documents))
        headers, body = rerank_request(self.provider, key, self.model, query, documents, top_n)
        try:
            response = requests.post(
                self.endpoint,
                headers=headers,
                json=body,
                timeout=self.timeout_ms / 1000,
                allow_redirects=False,  # the key is for this endpoint alone
                auth=without_netrc,
            )
        except requests.RequestException as error:
            if is_timeout(error):
                return _Failure("timeout", f"no reply within {self.timeout_ms} ms")
            return _Failure("connection", f"{self.endpoint} cannot be reached ({type(error).__name__})")
        if not 200 <= response.status_code < 300:
            return _Failure("http_error", f"{self.endpoint} answered with HTTP status {response.status_code}")
        try:
            items = rerank_items(self.provider, response.json())
        except (ValueError, RecursionError):
            items = None
        return items or _Failure("unusable_reply", f"{self.endpoint} answered with nothing that {self.provider} would")


def rerank_request(
    provider: str, key: str, model: str, query: str, documents: Sequence[str], top_n: int
) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body as the provider wants them; one that is unknown gets jina's."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    body: dict[str, Any] = {"model": model, "query": query, "documents": list(documents)}
    match provider:
        case "voyage":
            return headers, body | {"top_k": top_n}
        case "pinecone":
            headers = {"Content-Type": headers["Content-Type"], "Api-Key": key, "X-Pinecone-API-Version": "2024-10"}
            texts = [{"text": document} for document in documents]
            return headers, body | {"documents": texts, "top_n": top_n, "rank_fields": ["text"]}
        case "dashscope":
            return headers, {"model": model, "input": {"query": query, "documents": list(documents)}}
        case "tei":
            return headers, {"query": query, "texts": list(documents)}
    return headers, body | {"top_n": top_n}


def rerank_items(provider: str, reply: Any) -> list[RerankItem] | None:
    """The items of a decoded reply, from the first place that holds a usable one; None where none does."""
    score_keys = _SCORE_KEYS.get(provider, _OTHER_SCORE_KEYS)
    for place in _places(provider, reply):
        items = [item for entry in place if (item := _item(entry, score_keys))] if isinstance(place, list) else []
        if items:
            return items
    return None


def _places(provider: str, reply: Any) -> list[Any]:
    """Where the provider may have put the items, in the order of looking."""
    fields = reply if isinstance(reply, dict) else {}
    if provider != "dashscope":
        return [fields.get(name) if name else reply for name in _LOCATIONS.get(provider, _LOCATIONS["jina"])]
    output = fields.get("output")
    if output in (None, False, 0, ""):  # what JavaScript takes as absent: an empty object or list is there
        return [fields.get("results")]
    return [output.get("results")] if isinstance(output, dict) else []


def _item(entry: Any, score_keys: Sequence[str]) -> RerankItem | None:
    if not isinstance(entry, dict):
        return None
    index = _number(entry, "index")
    scores = (_number(entry, key) for key in score_keys)
    score = next((score for score in scores if score is not None), None)
    return None if index is None or score is None else RerankItem(index, score)


def _number(entry: dict[str, Any], key: str) -> float | None:
    """What JavaScript converts to a finite number, so that null counts as 0; a key that is missing is none."""
    number = to_number(entry[key]) if key in entry else math.nan
    return number if math.isfinite(number) else None


def _asked(frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """A row a query, as they stand in the frame: query_id, query, documents (a list of texts)."""
    texts = texts_of(batch, frame["document_id"])
    return (
        frame.select("query_id", documents=texts)
        .group_by("query_id", maintain_order=True)
        .agg("documents")
        .join(batch.queries.select("query_id", query="text"), on="query_id", how="left", maintain_order="left")
    )
