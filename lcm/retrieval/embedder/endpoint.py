"""Embeddings of any server with the /embeddings of OpenAI's API: OpenAI, Jina, Ollama, TEI, vLLM, llama.cpp."""

import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np

from lcm.checks import check_choice, check_range
from lcm.encoding import well_formed
from lcm.errors import ModelError, UnrecordedReplyError
from lcm.language_model.openai_compatible import Credential, Server, check_server
from lcm.protocols.models import TextKind, Vectors
from lcm.retrieval.embedder.windows import cut
from lcm.token_estimator import ScriptAware

_log = logging.getLogger(__name__)
_PATH = "/embeddings"
_NAME_SETTINGS = (
    "model", "dimensions", "request_dimensions", "query_prefix", "document_prefix", "query_options", "document_options",
    "max_tokens", "overlap_tokens",
)  # fmt: skip
_ESTIMATE = ScriptAware()
_CAUTIOUS = ScriptAware(cjk_tokens=3.0, astral_tokens=4.0, other_tokens=0.5)
"""Counts twice the estimate: code, Cyrillic and Arabic have up to twice the tokens of English of the same length."""
_FEWEST_TOKENS = 64
_SPENT = defaultdict[tuple[str, str], dict[str, int]](dict)
"""By server and name: a ranking embeds by several objects of one choice, and a run tells of all."""
_ROUNDING = 1e-6  # of the length of a row that was scaled in single precision


@dataclass(frozen=True, slots=True)
class Endpoint:
    """POST base_url/embeddings with `batch_size` texts at a time; rows are scaled to unit length.

    A row is what the server gave when it was asked first: the cache keeps it under model, revision and the settings
    that change it, wherever the model is served. A reply that is not whole is an error, and nothing of it is kept. What
    is tried again is told by `Server`. An empty text is not sent: its row is a fixed direction.

    No tokenizer of the model is at hand, so windows are cut by twice the estimated number of tokens.
    """

    is_online: ClassVar[bool] = True
    base_url: str
    """Up to where /embeddings follows."""
    model: str
    dimensions: int
    """How many values the model's vectors have."""
    revision: str | None = None
    """Tells apart models that a server has served under one name."""
    request_dimensions: bool = False
    """Whether the server is asked for vectors of so many values."""
    query_prefix: str = ""
    document_prefix: str = ""
    query_options: dict[str, Any] = field(default_factory=dict)
    """What else a request for queries says, as `input_type` or `task` of some servers; likewise for documents."""
    document_options: dict[str, Any] = field(default_factory=dict)
    max_tokens: int = 8191
    """The model's window, prefix included."""
    overlap_tokens: int = 64
    """What a window repeats of the one before it."""
    batch_size: int = 64
    """Texts of one request."""
    workers: int = 4
    """How many requests are made at once."""
    api_key_env: str | None = "OPENAI_API_KEY"
    """The environment variable with the key; None = the server wants none."""
    timeout_seconds: float = 60.0
    """Of each wait: for the connection, and for the next bytes of the reply."""
    retries: int = 5
    """How often a request is tried again."""
    price_per_million_tokens: float | None = None
    """None = no price is reported."""
    mode: Literal["record", "replay"] = "record"
    """replay: never ask; what is cached is all there is."""

    def __post_init__(self) -> None:
        check_server(self, _PATH)
        check_range(self, "dimensions", ge=2, is_whole=True)
        check_range(self, "max_tokens", ge=_FEWEST_TOKENS, is_whole=True)
        check_range(self, "overlap_tokens", ge=0, le=self.max_tokens // 4, is_whole=True)
        check_range(self, "batch_size", "workers", ge=1, is_whole=True)
        check_range(self, "price_per_million_tokens", ge=0, or_null=True)
        check_choice(self, mode=("record", "replay"))
        if 2 * self._prefix_tokens > self.max_tokens:
            raise ValueError(f"max_tokens {self.max_tokens} leaves no room for a text beside the prefixes")

    @property
    def name(self) -> str:
        """The name of the model and its settings, whichever server has it."""
        settings = {key: getattr(self, key) for key in _NAME_SETTINGS} | {"revision": self.revision}
        return f"endpoint-{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]}"

    @property
    def dim(self) -> int:
        return self.dimensions

    @property
    def spent(self) -> dict[str, int]:
        """Requests that were answered, their texts and tokens, by all embedders of this process that are this one."""
        return _SPENT[self._url, self.name]

    @property
    def _prefix_tokens(self) -> int:
        return max(_CAUTIOUS.count([self.query_prefix, self.document_prefix]))

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        budget = self.max_tokens - self._prefix_tokens
        return [
            [text] if tokens <= budget else _cut(text, budget, self.overlap_tokens)
            for text, tokens in zip(texts, _CAUTIOUS.count(texts), strict=True)
        ]

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        rows = np.empty((len(texts), self.dim), np.float32)
        for places, found in self.parts(texts, kind):
            rows[places] = found
        return rows

    def price(self, tokens: int) -> float | None:
        price = self.price_per_million_tokens
        return None if price is None else tokens * price / 1e6

    def parts(self, texts: Sequence[str], kind: TextKind, cached: int = 0) -> Iterator[tuple[list[int], Vectors]]:
        """Yield the places of some texts and their rows, reply by reply as they come.

        What is about to be spent is logged for the first request, and for several at once. When a request fails those
        that wait are not made any more; the replies to those under way are yielded first.

        Raises:
            UnrecordedReplyError: if nothing may be asked.
            ModelError: if the server gives no reply that can be used; an AuthError if it refuses the key.
        """
        blank = [i for i, text in enumerate(texts) if not text.strip()]
        if blank:
            fixed = np.zeros((len(blank), self.dim), np.float32)
            fixed[:, 0] = 1.0
            yield blank, fixed
        worded = [i for i, text in enumerate(texts) if text.strip()]
        if not worded:
            return
        if self.mode == "replay":
            raise UnrecordedReplyError(
                f"embedder.mode=replay asks nothing, and {len(worded):,} texts of {self.model} are not in the cache: "
                "run once with embedder.mode=record"
            )
        server = Server(self._url, self.timeout_seconds, self.retries)
        keys = server.keys(None, None, self.api_key_env, None)
        batches = [worded[start : start + self.batch_size] for start in range(0, len(worded), self.batch_size)]
        is_query = kind == "query"
        prefix, options = (
            (self.query_prefix, self.query_options) if is_query else (self.document_prefix, self.document_options)
        )
        bodies = [[prefix + well_formed(texts[i]) for i in batch] for batch in batches]
        if len(bodies) > 1 or not self.spent:
            _log.info("%s", self._estimate(bodies, cached))
        failure: ModelError | None = None
        unasked, waiting = iter(range(len(bodies))), dict[Future[Any], int]()
        with ThreadPoolExecutor(self.workers, thread_name_prefix="embed") as threads:
            while True:
                for i in islice(unasked, 0 if failure else self.workers - len(waiting)):
                    waiting[threads.submit(self._asked, server, bodies[i], options, keys)] = i
                if not waiting:
                    break
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    i = waiting.pop(future)
                    try:
                        reply = future.result()
                        self._count(reply, bodies[i])
                        found = self._rows(reply, len(bodies[i]))
                    except ModelError as error:
                        failure = failure or error
                    else:
                        yield batches[i], found
        if failure is not None:
            raise failure

    @property
    def _url(self) -> str:
        return f"{self.base_url.rstrip('/')}{_PATH}"

    def _estimate(self, bodies: Sequence[Sequence[str]], cached: int) -> str:
        """What is cached, and what the rest will take."""
        tokens = sum(sum(_ESTIMATE.count(texts)) for texts in bodies)
        price = self.price(tokens)
        return (
            f"{cached:,} vectors of {self.model} are cached; asking {self._url} for {sum(map(len, bodies)):,}: "
            f"{len(bodies):,} request{'s' * (len(bodies) > 1)}, about {tokens:,} tokens"
            f"{'' if price is None else f', price {price:.4g}'}"
        )

    def _asked(
        self, server: Server, texts: Sequence[str], options: Mapping[str, Any], keys: Sequence[Credential]
    ) -> Any:
        body: dict[str, Any] = {**options, "model": self.model, "input": texts}
        if self.request_dimensions:
            body["dimensions"] = self.dimensions
        return server.post(body, keys)

    def _count(self, reply: Any, texts: Sequence[str]) -> None:
        """Count a request; its tokens as the server says, else as they are estimated."""
        usage = reply.get("usage") if isinstance(reply, dict) else None
        told = usage.get("prompt_tokens", usage.get("total_tokens")) if isinstance(usage, dict) else None
        tokens = told if isinstance(told, int) else sum(_ESTIMATE.count(texts))
        spent = self.spent
        for name, more in {"requests": 1, "texts": len(texts), "tokens": tokens}.items():
            spent[name] = spent.get(name, 0) + more

    def _rows(self, reply: Any, count: int) -> Vectors:
        """The rows of a reply in the order of its texts.

        Raises:
            ModelError: if it has not one row a text, each of `dimensions` finite values that are not all 0.
        """
        data = reply.get("data") if isinstance(reply, dict) else None
        items = [one for one in data if isinstance(one, dict)] if isinstance(data, list) else []
        if len(items) != count:
            raise ModelError(f"{self._url} answered with {len(items)} vectors to {count} texts")
        places = [one.get("index", i) for i, one in enumerate(items)]
        if not all(type(place) is int for place in places) or sorted(places) != list(range(count)):
            raise ModelError(f"{self._url} answered with vectors whose index is not each of 0 to {count - 1} once")
        ordered = [one for _, one in sorted(zip(places, items, strict=True), key=lambda pair: pair[0])]
        try:
            rows = np.array([one.get("embedding") for one in ordered])
        except ValueError:  # lists of several lengths
            rows = np.empty(0)
        if rows.ndim != 2 or rows.dtype.kind not in "iuf":
            raise ModelError(f"{self._url} answered with vectors that are not lists of numbers of one length")
        if rows.shape[1] != self.dimensions:
            ask = "" if self.request_dimensions else ", or embedder.request_dimensions=true"
            raise ModelError(
                f"{self._url} answered with vectors of {rows.shape[1]} values, not {self.dimensions}: set "
                f"embedder.dimensions={rows.shape[1]}{ask}"
            )
        rows = rows.astype(np.float64)
        lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        if not np.isfinite(lengths).all() or not lengths.all():
            raise ModelError(f"{self._url} answered with a vector that is not finite, or all 0")
        lengths[np.abs(lengths - 1) < _ROUNDING] = 1.0  # of unit length already: kept to the bit
        unit: Vectors = (rows / lengths).astype(np.float32)
        return unit


def _cut(text: str, budget: int, overlap: int) -> list[str]:
    """Windows of at most `budget` tokens, counted cautiously, two characters at a time."""
    pairs = range(0, len(text), 2)
    counts = _CAUTIOUS.count([text[i : i + 2] for i in pairs])
    starts = [i for i, tokens in zip(pairs, counts, strict=True) for _ in range(tokens)]
    return cut(
        text,
        starts=starts,
        first_of_word=[i == 0 or text[i - 1].isspace() for i in starts],
        budget=budget,
        overlap=min(overlap, budget // 4),
        fits=lambda piece: _CAUTIOUS.count([piece])[0] <= budget,
    )
