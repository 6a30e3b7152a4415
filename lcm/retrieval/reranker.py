"""Score the best rows again: by cosines, by a local model that reads query and document together, or by a service."""

import logging
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import polars as pl

from lcm.checks import check_choice, check_range, check_weights
from lcm.consent import refused_key
from lcm.encoding import well_formed
from lcm.errors import ModelError
from lcm.javascript import to_number
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch, Columns, Numbers
from lcm.redaction import keep_secret
from lcm.retrieval.embedder.export import Precision, find_graph
from lcm.retrieval.embedder.hub import find_folder
from lcm.retrieval.embedder.session import Device, Lazy, Session, place_of
from lcm.retrieval.frames import beside, best_first, queries_of, rows_by_size, texts_of, vectors_of
from lcm.retrieval.ranking.stages.scores import clamp01, clamp01_with_floor
from lcm.retrieval.ranking.stages.selection import Limit

_log = logging.getLogger(__name__)
_ROWS_AT_ONCE = 256
"""How many rows are multiplied at once: less than 1 MB in float64, which caches hold."""
_FEWEST_TOKENS = 16  # special tokens, and something of either text
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


@dataclass(frozen=True, slots=True)
class NoReranker:
    """The rows as they are, all of them."""

    contract = Contract(is_off=True)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame


@dataclass(frozen=True, slots=True)
class RerankItem:
    """One entry of a reranker's reply."""

    index: float
    """0-based among the documents that were sent; one that names none of them counts for nothing."""
    score: float


@dataclass(frozen=True, slots=True)
class Blend:
    """A reranker's score s with the score f that a row came with, never below a share of f.

    Returned by the reranker: max(floor, reranker_weight s + score_weight f). Not returned:
    max(floor, unreturned_weight f). The floor is a share of f, the greater the stronger lexical_score b is: strong from
    `strong_from`, fair from `fair_from`, else weak; b is 0 where words did not find the row. All in [0, 1]; a blend
    that is not a number gives the floor, a floor that is none 0.

    Source: memory-lancedb-pro, rerankResults and getRerankPreservationFloor.
    """

    reranker_weight: float = 0.6
    score_weight: float = 0.4
    unreturned_weight: float = 0.8
    strong_from: float = 0.75
    strong_floor: float = 0.95
    strong_floor_unreturned: float = 1.0
    fair_from: float = 0.6
    fair_floor: float = 0.9
    fair_floor_unreturned: float = 0.95
    weak_floor: float = 0.5
    weak_floor_unreturned: float = 0.8

    def __post_init__(self) -> None:
        check_weights(self, "reranker_weight", "score_weight")
        names = [field.name for field in fields(self)]
        check_range(self, *(name for name in names if "_floor" in name), ge=0, le=1)
        check_range(self, *names, ge=0)

    def floor(self, columns: Columns) -> Numbers:
        """The least that a row keeps, by its score, lexical_score and reranker_score (missing where not returned)."""
        is_unreturned = columns.are_missing("reranker_score")
        lexical = np.nan_to_num(columns.numbers("lexical_score"), posinf=np.inf, neginf=-np.inf)

        def share(returned: float, unreturned: float) -> Numbers:
            return np.where(is_unreturned, unreturned, returned)

        fair = share(self.fair_floor, self.fair_floor_unreturned)
        floor = np.where(lexical >= self.fair_from, fair, share(self.weak_floor, self.weak_floor_unreturned))
        strong = share(self.strong_floor, self.strong_floor_unreturned)
        return columns.numbers("score") * np.where(lexical >= self.strong_from, strong, floor)

    def apply(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give every row its new score, from its score, lexical_score and reranker_score; the rows stay in place."""
        columns = Columns(frame)
        score, reranker_score = columns.numbers("score"), columns.numbers("reranker_score")
        returned = self.reranker_weight * reranker_score + self.score_weight * score
        kept = np.where(columns.are_missing("reranker_score"), self.unreturned_weight * score, returned)
        return beside(frame, [pl.Series("score", clamp01_with_floor(kept, self.floor(columns)))])


def with_replies(frame: pl.DataFrame, replies: Mapping[str, Sequence[RerankItem]], blend: Blend) -> pl.DataFrame:
    """Blend what a reranker replied; among equal scores returned rows come first, in the order of the reply.

    An index that is not that of a row is ignored. One that comes several times counts once, where its score is highest:
    the original returns such a row several times.

    Args:
        frame: rows of the queries that `replies` answers, the rows of a query together.
        replies: query id to the items of its reply; an index counts the rows of that query.
    """
    scores: list[float | None] = []
    places: list[int] = []
    for query_id, count in frame.select(pl.col("query_id").rle().struct.unnest()).select("value", "len").iter_rows():
        best: dict[int, tuple[float, int]] = {}
        for place, item in enumerate(replies[query_id]):
            if 0 <= item.index < count and item.index == int(item.index):
                row = int(item.index)
                if row not in best or item.score > best[row][0]:
                    best[row] = item.score, place
        scores.extend(best[row][0] if row in best else None for row in range(count))
        places.extend(best[row][1] if row in best else len(replies[query_id]) + row for row in range(count))
    replied = frame.with_columns(
        reranker_score=pl.Series(scores, dtype=pl.Float64), _place=pl.Series(places, dtype=pl.Int64)
    )
    in_order = replied.sort(pl.col("query_id").rle_id(), "_place", maintain_order=True).drop("_place")
    return best_first(blend.apply(in_order))


class _Windowed:
    """Reads no more than the best rows of each query, and keeps those alone."""

    __slots__ = ()
    window: int | None

    def first(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """The best `window` rows of each query, best first; None keeps all as they stand."""
        return frame if self.window is None else Limit(self.window)(frame, batch)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are kept."""
        if self.window is None:
            return pl.DataFrame(schema=REASONS_SCHEMA)
        return Limit(self.window).reasons(frame, batch)


@dataclass(frozen=True, slots=True)
class Cosine(_Windowed):
    """score = score_weight f + cosine_weight c in [0, 1], f the score before, c the cosine of query and document.

    c is below 0 where they point apart, so a row can lose. A blend that is not a number leaves f, and an f that is none
    becomes 0. Puts c into reranker_score.

    One width for all: where the documents' vectors are not as wide as the queries', every row keeps its score, and that
    is counted in the batch as rerank_without_cosine. An index here has one width, so it happens only where the queries
    could not be embedded.

    Source: memory-lancedb-pro, rerankResults without a cross-encoder.
    """

    window: int | None = 40
    """How many candidates of a query are kept; None = all."""
    score_weight: float = 0.7
    cosine_weight: float = 0.3
    contract = Contract(reads_unit_scores=True, needs_vectors=True)

    def __post_init__(self) -> None:
        check_range(self, "window", ge=1, or_null=True)
        check_weights(self, "score_weight", "cosine_weight")

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = self.first(frame, batch)
        cosines = _cosines(kept, batch)
        if cosines is None:
            _log.warning("the queries have no vectors as wide as the documents': reranking by cosine is left out")
            batch.incidents["rerank_without_cosine"] += kept["query_id"].n_unique()
            return kept.with_columns(reranker_score=pl.lit(None, pl.Float64))
        score = Columns(kept).numbers("score")
        blended = clamp01(self.score_weight * score + self.cosine_weight * cosines, score)
        return best_first(beside(kept, [pl.Series("reranker_score", cosines), pl.Series("score", blended)]))


def _cosines(frame: pl.DataFrame, batch: Batch) -> Numbers | None:
    """The cosine of each row, None where the widths differ."""
    if frame.is_empty():
        return np.empty(0)
    if batch.embedding_error is not None:
        return None
    documents, document_of_row = vectors_of(batch, frame["document_id"])
    if documents.shape[1] != batch.vectors.shape[1]:
        return None
    query_of_row, queries = queries_of(frame, batch).to_numpy(), batch.vectors.astype(np.float64)
    cosines = np.empty(len(frame))
    for rows in rows_by_size(frame, _ROWS_AT_ONCE):
        found = documents[document_of_row[rows]].astype(np.float64)
        cosines[rows] = np.einsum("qrd,qd->qr", found, queries[query_of_row[rows[:, 0]]])
    return cosines


@dataclass(frozen=True, slots=True)
class CrossEncoder(_Windowed):
    """(query, document) → tokens → model → one logit → activation → blend. Puts the score into reranker_score.

    A pair too long for the model loses tokens of its longer text, from the end. On the CPU one pair a call and one
    thread a call, as the embedders do it, so that a score depends on nothing but its pair: pairs padded to a common
    length, or quantized by a common scale, would move each other's last bits. Calls run side by side on all threads. On
    CUDA the pairs of all queries are read in batches of like length, in fp16. Nothing is opened, fetched or exported
    before the first use.
    """

    blend: Blend
    directory: str | None = None
    """A folder that holds a sequence classifier with one label, in place of the hub."""
    model: str | None = None
    """Its name on the Hugging Face hub, or a folder too."""
    file: str | None = None
    """The graph, in the folder; None = the only one, or an export."""
    precision: Precision = "int8"
    """Of an export for the CPU."""
    device: Device = "auto"
    window: int | None = 40
    """How many candidates of a query are kept and read; None = all."""
    max_tokens: int = 512
    """The model's window, special tokens included."""
    activation: Literal["sigmoid", "none"] = "sigmoid"
    """Of the logit; none for a graph that ends in a score."""
    threads: int | None = None
    """None = one a processor. Scores do not depend on it."""
    _session: Lazy[Session] = field(default_factory=Lazy, init=False, repr=False, compare=False)
    contract = Contract(reads_unit_scores=True)

    def __post_init__(self) -> None:
        check_range(self, "window", ge=1, or_null=True)
        if self.file is not None and not self.file.endswith(".onnx"):
            raise ValueError(f"file must end in .onnx, got {self.file!r}")
        check_range(self, "max_tokens", ge=_FEWEST_TOKENS)
        check_choice(self, activation=("sigmoid", "none"), precision=Precision, device=Device)
        check_range(self, "threads", ge=1, or_null=True)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = self.first(frame, batch)
        asked: dict[str, str] = dict(batch.queries.select("query_id", "text").iter_rows())
        pairs = zip(
            (asked[one] for one in kept["query_id"]), texts_of(batch, kept["document_id"]).to_list(), strict=True
        )
        scores = self.scores([(query, text or "") for query, text in pairs])
        return best_first(self.blend.apply(kept.with_columns(reranker_score=pl.Series(scores, dtype=pl.Float64))))

    def scores(self, pairs: list[tuple[str, str]]) -> list[float]:
        """How well each document answers its query.

        Raises:
            ModelError: if there is no model, or it gives no number.
        """
        if not pairs:
            return []
        session = self._session.get(self._open_session)
        formed = [(well_formed(query), well_formed(document)) for query, document in pairs]
        if session.place == "cuda":
            logits = session.run_padded(session.tokenizer.encode_batch(formed))[:, 0].tolist()
        else:
            logits = session.map(lambda pair: float(session.run(session.tokenizer.encode(*pair))[0]), formed)
        return [self._score(logit, document) for logit, (_, document) in zip(logits, pairs, strict=True)]

    def model_folder(self) -> Path:
        """Where the model lies, fetched from the hub if it is nowhere here.

        Raises:
            ModelError: if it cannot be fetched, or none is named.
        """
        if not (self.directory or self.model):
            raise ModelError(
                "reranker=cross_encoder has no model: set reranker.directory to a folder that holds a cross-encoder as "
                ".onnx file with its tokenizer.json, or reranker.model to the name of one on the Hugging Face hub"
            )
        return find_folder(self.directory, str(self.model))

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        self._session.close()

    def _open_session(self) -> Session:
        place = place_of(self.device)
        precision = "fp32" if place == "cuda" else self.precision
        graph, tokenizer = find_graph(self.model_folder(), self.file, precision, prefers_own=self.directory is not None)
        session = Session.open(graph, tokenizer, self.threads, place)
        output = next(entry for entry in session.model.get_outputs() if entry.name == session.output)
        if session.width != 1 or len(output.shape) != 2:
            raise ModelError(
                f"{graph} gives {session.output!r} of shape {output.shape}; a cross-encoder gives one logit"
            )
        session.tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
        return session

    def _score(self, logit: float, document: str) -> float:
        if not math.isfinite(logit):
            raise ModelError(f"{self.directory or self.model} gives {logit} for {document[:60]!r}")
        # The logistic function, in a form that cannot overflow.
        return 0.5 + 0.5 * math.tanh(logit / 2) if self.activation == "sigmoid" else logit


class _Failure(NamedTuple):
    """Why a query has no reply; never holds the key."""

    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Remote(_Windowed):
    """Ask a reranking service to score each query's candidates, all of them in one request, then blend.

    Whatever goes wrong with a query (missing_key, timeout, connection, http_error, unusable_reply) leaves it to
    `fallback`: counted in the batch as rerank_KIND, logged once a kind. Puts the service's score into reranker_score,
    null where it returned none.

    Source: memory-lancedb-pro, rerankResults, buildRerankRequest and parseRerankResponse.
    """

    is_online: ClassVar[bool] = True
    contract: ClassVar[Contract] = Contract(reads_unit_scores=True, needs_vectors=True)
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
        check_range(self, "window", ge=1, or_null=True)
        check_choice(self, provider=Provider)
        address = urlsplit(self.endpoint)
        if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
            raise ValueError("endpoint must begin with http:// or https://, name a host, and hold no user or password")
        check_range(self, "timeout_ms", ge=500)
        check_range(self, "workers", ge=1)
        check_range(self, "top_n", ge=1, or_null=True)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = self.first(frame, batch)
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
        import requests  # a tenth of a second, for those alone who ask

        from lcm.language_model.openai_compatible import is_timeout, without_netrc

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
