"""Candidates from a memory's indexes of vectors and words, or from indexes of a source's own; and how answers of the
indexes become rows of one frame, with what documents are beside them."""

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import ClassVar, Literal, TypeVar

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.errors import LcmError, UnrecordedReplyError
from lcm.faults import is_of_machine
from lcm.protocols.contract import Contract, contract_of
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import (
    Batch,
    Branch,
    Columns,
    Raw,
    Source,
    TextIndex,
    TextIndexChoice,
    Tiered,
    Truths,
    VectorIndex,
)
from lcm.records.document import GLOBAL_SCOPE, SCOPE_CLASSES
from lcm.retrieval.frames import beside, documents_of, queries_of, texts_of
from lcm.retrieval.indexes import embedded, embedded_texts
from lcm.retrieval.vector_index.exact import Exact

CANDIDATE_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "asked_at": pl.Datetime("ms", "UTC"),
    "document_id": pl.String(),
    "cosine": pl.Float64(),
    "bm25": pl.Float64(),
    "contained": pl.Float64(),
    "index_tier": pl.Int64(),
    "dense_rank": pl.Int64(),
    "lexical_rank": pl.Int64(),
    "score": pl.Float64(),
}
"""What every source returns: raw scores, 1-based ranks, null where that branch did not return the row. `contained` is
the score, in (0, 1), of a document that the lexical branch found by substring because no word was found;
`index_tier` the width that answered, of an index with several."""

POOLED = "pooled"
"""A column that a source gives all rows of pools: evidence is of them and of what stands around them, not of all that
is seen."""

FOUND_BY_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "branch": pl.String(),
    "document_id": pl.String(),
    "rank": pl.Int64(),
    "score": pl.Float64(),
}
"""What each branch of a source found: its own 1-based ranks, and its raw scores."""

DESCRIBED_BY = (
    "kind", "category", "scope", "conversation_id", "session_id", "seq", "created_at", "last_accessed_at",
    "valid_until", "access_count", "importance", "confidence", "decay_tier", "temporal_type", "tokens", "length_utf16",
    "authority", "decay_rate",
)  # fmt: skip
"""What stages see of each document besides its raw scores and its `scope_class`; texts, vectors and hop targets are
asked of the batch."""

OF_USE = frozenset({"access_count", "last_accessed_at", "decay_tier"})
"""Of these, what changes where a document is used."""
OF_ANNOTATION = frozenset({"category", "importance", "temporal_type", "valid_until"})
"""Of these, what an annotation writes."""

SCOPE_CLASS = pl.Enum(SCOPE_CLASSES)
_CLASSES = pl.Series("scope_class", SCOPE_CLASSES, SCOPE_CLASS)
_SESSION, _DURABLE, _GLOBAL = map(SCOPE_CLASSES.index, ("session", "durable", "global"))

_KEYS = ["query", "document_id"]
_ASKED = ("query_id", "asked_at")
RANKED_BY = {
    "cosine": pl.col("dense_rank"),
    "bm25": pl.col("lexical_rank"),
    "score": pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("query_id"),
}
"""By what a source of one order gives: the 1-based rank of each of its rows."""
_OF_TWO = {"cosine": "dense_score", "bm25": "lexical_score"}
"""The raw scores of the two branches that every frame has, and the columns of the scores that stages make of them."""


def further_branches(frame: pl.DataFrame) -> list[str]:
    """The names of the branches that a frame has beside dense and lexical, in their order."""
    ranks = [column for column in frame.columns if column.endswith("_rank")]
    return [column.removesuffix("_rank") for column in ranks if column not in ("dense_rank", "lexical_rank")]


def scored_columns(frame: pl.DataFrame, raw: Literal["cosine", "bm25"]) -> dict[str, str]:
    """The columns of a frame that hold a raw score of this kind, of every branch, and for each that of its score."""
    further = (column for column in frame.columns if column.endswith(f"_{raw}"))
    return {raw: _OF_TWO[raw]} | {column: f"{column.removesuffix(raw)}score" for column in further}


def read_by(part: object) -> tuple[str, ...]:
    """The columns of documents that a stage or a decay says it reads; all, of one that does not say."""
    reads = contract_of(part).reads
    return tuple(DESCRIBED_BY) if reads is None else reads


def found_by(candidates: pl.DataFrame) -> pl.DataFrame:
    """Candidate rows as the answers of their branches: rows of `FOUND_BY_SCHEMA`, each branch best first.

    A source that orders its rows by nothing but a score of its own has none.
    """
    raw = {"dense": "cosine", "lexical": "bm25"}
    for name in further_branches(candidates):
        given = (f"{name}_{kind}" for kind in ("cosine", "bm25", "score"))
        raw[name] = next(column for column in given if column in candidates.columns)
    parts = [
        candidates.filter(pl.col(f"{name}_rank").is_not_null())
        .select("query_id", pl.lit(name).alias("branch"), "document_id", rank=f"{name}_rank", score=column)
        .sort(pl.col("query_id").rle_id(), "rank", maintain_order=True)
        for name, column in raw.items()
    ]
    return pl.concat([pl.DataFrame(schema=FOUND_BY_SCHEMA), *parts])


def branch(answers: Sequence[tuple[Sequence[str], Sequence[float]]], score: str, rank: str) -> pl.DataFrame:
    """Lay out the answers of one index, an (ids, scores) pair a query, as rows: query, document_id, score, rank.

    `query` is the position of the query in its batch. An id named twice keeps its first place and takes its last
    score and rank.
    """
    counts = [len(ids) for ids, _ in answers]
    ranks = [np.arange(1, count + 1) for count in counts]
    frame = pl.DataFrame(
        [
            pl.Series("query", np.repeat(np.arange(len(counts), dtype=np.uint32), counts)),
            pl.Series("document_id", list(chain.from_iterable(ids for ids, _ in answers)), pl.String),
            pl.Series(score, list(chain.from_iterable(scores for _, scores in answers)), pl.Float64),
            pl.Series(rank, np.concatenate([np.empty(0, np.int64), *ranks])),
        ]
    )
    if any(len(set(ids)) < len(ids) for ids, _ in answers):
        frame = frame.group_by(_KEYS, maintain_order=True).agg(pl.col(score).last(), pl.col(rank).last())
    return frame


def merge(batch: Batch, *branches: pl.DataFrame) -> pl.DataFrame:
    """Join branches into candidate rows, the queries in the order of the batch.

    Within a query: the rows of the first branch in their order, then those that only the next one found, in theirs.
    """
    rows = branches[0]
    for further in branches[1:]:
        rows = rows.join(further, on=_KEYS, how="full", coalesce=True, maintain_order="left_right")
        rows = rows.sort("query", maintain_order=True)
    asked = [batch.queries[name][rows["query"]] for name in _ASKED]  # a frame would go to Polars' threads
    return laid_out(beside(rows, asked), CANDIDATE_SCHEMA)


def laid_out(rows: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The columns of a schema: those that the rows have, and null in all others."""
    names = rows.columns
    return pl.DataFrame(
        [rows[name] if name in names else _nothing(name, dtype, len(rows)) for name, dtype in schema.items()]
    )


def _nothing(name: str, dtype: pl.DataType, rows: int) -> pl.Series:
    return pl.Series(name, [None], dtype).new_from_index(0, rows)


def describe(candidates: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Put the documents' columns beside their candidate rows, and what each document is to its query.

    A row whose document the batch does not know is dropped; columns that the rows have already are read anew.
    """
    known = documents_of(batch, candidates["document_id"], ["document_id", *DESCRIBED_BY])
    again = [name for name in (*DESCRIBED_BY, "scope_class") if name in candidates.columns]
    rows = candidates.drop(again) if again else candidates
    if known["document_id"].has_nulls():
        rows, known = rows.filter(is_known := known["document_id"].is_not_null()), known.filter(is_known)
    return _classed(rows.hstack([column for column in known if column.name != "document_id"]), batch)


def _classed(rows: pl.DataFrame, batch: Batch) -> pl.DataFrame:
    """Add `scope_class`: `session` of what was said in the asker's own session (conversation, where the query names no
    session); of the rest `global` what is shared, else `durable`.
    """
    is_shared = Columns(rows).are("scope", GLOBAL_SCOPE) & (batch.scopes is not None)
    classes = np.where(_are_own(rows, batch), _SESSION, np.where(is_shared, _GLOBAL, _DURABLE)).astype(np.uint32)
    return rows.hstack([_CLASSES[pl.Series(classes)]])


def _are_own(rows: pl.DataFrame, batch: Batch) -> Truths:
    """Which rows were said in the session of their query, or in its conversation where a session is unknown."""
    own = batch.queries.select("session_id", "conversation_id")
    if all(column.null_count() == len(column) for column in own):
        return np.zeros(len(rows), np.bool_)
    of_query = queries_of(rows, batch)
    told = rows["session_id"] == own["session_id"][of_query]
    if told.has_nulls():
        is_talk = rows["conversation_id"] == own["conversation_id"][of_query]
        told = told.zip_with(told.is_not_null(), is_talk)
    return np.asarray(told.to_numpy() == True)  # noqa: E712  # where nothing is known it is not the same


def filled(source: Source) -> tuple[str, ...]:
    """Which of cosine and bm25 a source has."""
    return (source.gives,) if isinstance(source, Branch) else contract_of(source).fills


def check_branch(key: str, value: object) -> None:
    """Refuse what gives no single order of documents.

    Raises:
        TypeError: naming the key, and what it holds.
    """
    if not isinstance(value, Branch):
        raise TypeError(f"{key} must be a source of one order (dense, lexical ...), got {value!r}")


_log = logging.getLogger(__name__)
_Index = TypeVar("_Index", VectorIndex, TextIndex)
_KEPT = 8  # indexes of a kind, of one memory: live queries ask the same ones again and again

FAILURES = (LcmError, sqlite3.Error, OSError, RuntimeError)
"""What a broken index or model raises; anything else is a mistake in the program."""

_SYNONYMS = (
    ("挂了 挂掉 宕机", ("shutdown", "crashed"), "崩溃 crash error 报错 宕机 失败"),
    ("卡住 卡死 没反应", ("hung", "frozen"), "hang timeout 超时 无响应 stuck"),
    ("炸了 爆了", ("oom",), "崩溃 crash OOM 内存溢出 error"),
    ("配置 设置", ("config", "configuration"), "配置 config configuration settings 设置"),
    ("部署 上线", ("deploy", "deployment"), "deploy 部署 上线 发布 release"),
    ("容器", ("docker", "container"), "Docker 容器 container docker-compose"),
    ("报错 出错 错误", ("error", "exception"), "error 报错 exception 错误 失败 bug"),
    ("修复 修了 修好", ("bugfix", "hotfix"), "fix 修复 patch 解决"),
    ("踩坑", ("troubleshoot",), "踩坑 bug 问题 教训 排查 troubleshoot"),
    ("记忆 记忆系统", ("memory",), "记忆 memory 记忆系统 LanceDB 索引"),
    ("搜索 查找 找不到", ("search", "retrieval"), "搜索 search retrieval 检索 查找"),
    ("推送", ("git push",), "push|推送|git push|commit"),
    ("日志", ("logfile", "logging"), "日志 log logging 输出 打印"),
    ("权限", ("permission", "authorization"), "权限 permission access 授权 认证"),
)
"""Groups of words that engineers use for the same thing: Chinese triggers, English triggers, synonyms in order.

Source: memory-lancedb-pro, query-expander; simplified Chinese and English only.
"""

_SHORTEST = 2  # characters of a query that is expanded


@dataclass(frozen=True, slots=True)
class QueryExpansion:
    """Append the synonyms of each group that the query triggers, in order, until `most` are added.

    A group is triggered by one of its Chinese words anywhere in the query, or by one of its English words between
    word boundaries. What the query says already is not added.

    Source: memory-lancedb-pro, query-expander.
    """

    callers: Sequence[str] = ("manual", "cli")
    """Whose queries are expanded."""
    most: int = 5
    """Synonyms added to one query."""

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most must be >= 1, got {self.most}: leave expansion out with expansion=null")

    def expand(self, text: str, caller: str) -> str:
        if caller not in self.callers or len(text.strip()) < _SHORTEST:
            return text
        lowered = text.lower()
        added: list[str] = []
        for chinese, english, synonyms in _SYNONYMS:
            if any(word in lowered for word in chinese.split()) or any(_says(text, word) for word in english):
                words = synonyms.split("|") if "|" in synonyms else synonyms.split()
                added += [word for word in dict.fromkeys(words) if word.lower() not in lowered and word not in added]
        return " ".join([text, *added[: self.most]])


def _says(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.ASCII | re.IGNORECASE) is not None


@dataclass(frozen=True, slots=True)
class Dense:
    """The `pool_size` nearest documents by cosine."""

    pool_size: int = 1000
    embedder: Embedder | None = None
    """Whose vectors are compared, each with each; None = those of the memory, in its index."""
    gives: ClassVar[Raw] = "cosine"

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    @property
    def contract(self) -> Contract:
        is_own = self.embedder is None
        return Contract(asks=("vector_index",) if is_own else (), needs_vectors=is_own)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if self.embedder is not None:
            batch = with_vectors_of(self.embedder, batch)
        return merge(batch, dense_branch(batch, self.pool_size))


def dense_branch(batch: Batch, pool_size: int) -> pl.DataFrame:
    """Rows query (its position), document_id, cosine, dense_rank; index_tier too, of an index with several widths.

    Raises:
        LcmError: if the queries could not be embedded.
    """
    if batch.embedding_error is not None:
        raise batch.embedding_error
    if not isinstance(batch.vector_index, Tiered):
        return branch(batch.vector_index.search(batch.vectors, pool_size, batch.allowed), "cosine", "dense_rank")
    found = batch.vector_index.search_tiers(batch.vectors, pool_size, batch.allowed)
    rows = branch([(ids, cosines) for ids, cosines, _ in found], "cosine", "dense_rank")
    tiers = pl.Series([tier for *_, tier in found], dtype=pl.Int64)
    return beside(rows, [tiers[rows["query"]].alias("index_tier")])


@dataclass(frozen=True, slots=True)
class Lexical:
    """The `pool_size` best documents by BM25."""

    pool_size: int = 1000
    expansion: QueryExpansion | None = None
    """Adds words to the query; None = the query as it is."""
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    text_index: TextIndexChoice | None = None
    """What is asked; None = the index of the memory."""
    gives: ClassVar[Raw] = "bm25"

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    @property
    def contract(self) -> Contract:
        return Contract(asks=() if self.text_index is not None else ("text_index",))

    def candidates(self, batch: Batch) -> pl.DataFrame:
        if self.text_index is not None:
            batch = with_words_in(self.text_index, batch)
        return merge(batch, lexical_branch(batch, self.pool_size, self.expansion, self.containment))


def lexical_branch(
    batch: Batch, pool_size: int, expansion: QueryExpansion | None = None, containment: bool = False
) -> pl.DataFrame:
    """Rows query (its position), document_id, bm25, lexical_rank; with `containment` also contained.

    With `containment` substrings also answer for an index that fails: logged and counted.

    Raises:
        LcmError: if the index fails, and nothing answers for it.
    """
    texts: Sequence[str] = batch.queries["text"].to_list()
    if expansion is not None:
        texts = [expansion.expand(text, caller) for text, caller in zip(texts, batch.queries["caller"], strict=True)]
    try:
        answers = batch.text_index.search(texts, pool_size, batch.allowed)
    except FAILURES as error:
        if is_of_machine(error):
            raise
        if not containment:
            raise LcmError(f"the text index failed: {error}") from error
        _log.warning("the text index failed, substrings answer for it: %s", error)
        batch.incidents["text index failed"] += len(texts)
        answers = [([], [])] * len(texts)
    rows = branch(answers, "bm25", "lexical_rank")
    if not containment:
        return rows
    silent = [position for position, (ids, _) in enumerate(answers) if not ids]
    return with_containment(rows, [(position, texts[position]) for position in silent], batch.documents, pool_size)


_FIELDS = {"text": 1.0, "overview": 0.92, "content": 0.96}
"""What a hit in each field is worth. The abstract of a document is its text, which is worth more."""
_FLOOR, _A_CHARACTER, _CEILING = 0.72, 0.02, 0.95


def with_containment(
    rows: pl.DataFrame, queries: Sequence[tuple[int, str]], documents: pl.DataFrame, pool_size: int
) -> pl.DataFrame:
    """Add the rows of queries that no word answered, the best first, newer ones before older ones.

    min(0.95, 0.72 + 0.02 * characters of the query) times what the field is worth, the best of its fields. Texts are
    compared trimmed and in lower case; characters are UTF-16 code units.

    Args:
        rows: query, document_id, bm25, lexical_rank.
        queries: positions and texts.
        documents: the visible ones.
        pool_size: rows a query at most.
    Source: memory-lancedb-pro, lexical fallback.
    """
    found = [beside(rows, [pl.Series("contained", [None], pl.Float64).new_from_index(0, len(rows))])]
    wanted = [(position, text.strip().lower()) for position, text in queries]
    if not any(text for _, text in wanted):
        return found[0]
    lowered = documents.select(
        "document_id", "created_at", *(pl.col(name).str.strip_chars().str.to_lowercase() for name in _FIELDS)
    )
    found += [
        _contained(lowered, text, pool_size).with_columns(query=pl.lit(position, pl.UInt32))
        for position, text in wanted
        if text
    ]
    return pl.concat(found, how="diagonal").sort("query", maintain_order=True)


def _contained(lowered: pl.DataFrame, query: str, pool_size: int) -> pl.DataFrame:
    value = min(_CEILING, _FLOOR + _A_CHARACTER * (len(query.encode("utf-16-le", "surrogatepass")) // 2))
    worth = [
        pl.when(pl.col(name).str.contains(query, literal=True)).then(value * weight).otherwise(0.0)
        for name, weight in _FIELDS.items()
    ]
    return (
        lowered.select("document_id", "created_at", contained=pl.max_horizontal(worth))
        .filter(pl.col("contained") > 0)
        .sort("contained", "created_at", descending=True, maintain_order=True)
        .head(pool_size)
        .select("document_id", "contained", lexical_rank=pl.int_range(1, pl.len() + 1))
    )


@dataclass(frozen=True, slots=True)
class TagPrefixes:
    """What counts as a tag: one of the prefixes, a colon, and letters, digits, _ or -; in any case, anywhere.

    Source: memory-lancedb-pro, retriever.
    """

    prefixes: Sequence[str] = field(default_factory=lambda: ["proj", "env", "team", "scope"])
    """Regular expressions; none at all means that there are no tags."""

    def __post_init__(self) -> None:
        for prefix in self.prefixes:
            try:
                re.compile(prefix)
            except re.error as err:
                raise ValueError(f"prefixes must be regular expressions, got {prefix!r}: {err}") from err

    def tags(self, text: str) -> list[str]:
        """The tags of a text, in order."""
        return [match.group() for match in _pattern(tuple(self.prefixes)).finditer(text)] if self.prefixes else []


@cache
def _pattern(prefixes: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(prefixes)}):[A-Za-z0-9_-]+", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Tagged:
    """Of the `pool_size` best documents by BM25 those whose text holds every tag of the query, in any case.

    A query without a tag is answered as by `Lexical`.
    """

    tags: TagPrefixes = field(default_factory=TagPrefixes)
    pool_size: int = 1000
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    gives: ClassVar[Raw] = "bm25"
    contract = Contract(asks=("text_index",))

    def __post_init__(self) -> None:
        check_range(self, "pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        rows = lexical_branch(batch, self.pool_size, None, self.containment)
        tags = [[tag.lower() for tag in self.tags.tags(text)] for text in batch.queries["text"]]
        carries = [
            all(tag in (text or "").lower() for tag in tags[query])
            for query, text in zip(rows["query"], texts_of(batch, rows["document_id"]).to_list(), strict=True)
        ]
        return merge(batch, rows.filter(pl.Series(carries, dtype=pl.Boolean)))


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The best of each index; a document in one branch's pool but not the other's lacks that other raw score.

    Pools as large as the haystack give every document its cosine. Where one branch fails the other answers alone: a
    warning is logged and the failure counted. Where both fail, so does the search.
    """

    dense_pool_size: int = 1000
    lexical_pool_size: int = 1000
    expansion: QueryExpansion | None = None
    """Adds words to the lexical branch's query; None = the query as it is."""
    containment: bool = False
    """Where no word is found, look for the whole query inside the texts."""
    contract = Contract(needs_vectors=True)

    def __post_init__(self) -> None:
        check_range(self, "dense_pool_size", "lexical_pool_size", ge=1)

    def candidates(self, batch: Batch) -> pl.DataFrame:
        dense, dense_error = tried("dense", lambda: dense_branch(batch, self.dense_pool_size), batch)
        lexical, lexical_error = tried(
            "lexical", lambda: lexical_branch(batch, self.lexical_pool_size, self.expansion, self.containment), batch
        )
        if dense_error and lexical_error:
            raise LcmError(f"both branches failed: dense: {dense_error}; lexical: {lexical_error}") from lexical_error
        return merge(batch, *(rows for rows in (dense, lexical) if rows is not None))


def tried(
    name: str, search: Callable[[], pl.DataFrame], batch: Batch, others: str = "the other one answers alone"
) -> tuple[pl.DataFrame | None, Exception | None]:
    """What a branch found, or why it failed: logged, and counted among what was survived."""
    try:
        return search(), None
    except FAILURES as error:
        if is_of_machine(error) or isinstance(error, UnrecordedReplyError):
            raise
        _log.warning("the %s branch failed, %s: %s", name, others, error)
        batch.incidents[f"{name} branch failed"] += len(batch.queries)
        return None, error


def with_vectors_of(embedder: Embedder, batch: Batch) -> Batch:
    """The batch as if its memory had this embedder, and compared each vector with each: in an index of nothing but the
    documents that its queries may see, so that no score tells of later ones, nor of other scopes.

    Raises:
        LcmError: if its queries or documents cannot be embedded.
    """

    def made() -> VectorIndex:
        index = Exact().build(embedder.dim, incidents=Counter())
        windows = embedded(embedder, embedded_texts(batch.documents))
        if windows:
            owners = [i for i, rows in zip(batch.documents["document_id"], windows, strict=True) for _ in rows]
            index.add(owners, np.concatenate(windows))
        return index

    index = _kept(batch, embedder.name, _content(batch, "content"), made)
    vectors = embedder.embed([well_formed(text) for text in batch.queries["text"]], "query")
    return replace(batch, vectors=vectors, vector_index=index, allowed=None, embedding_error=None)


def with_words_in(text_index: TextIndexChoice, batch: Batch) -> Batch:
    """The batch as if its memory had this text index."""

    def made() -> TextIndex:
        index = text_index.build()
        index.add(batch.documents["document_id"].to_list(), batch.documents["text"].to_list())
        return index

    return replace(batch, text_index=_kept(batch, repr(text_index), _content(batch), made), allowed=None)


def _content(batch: Batch, *besides: str) -> bytes:
    """What an index is made of."""
    rows: pl.Series = batch.documents.select("document_id", "text", *besides).hash_rows()
    return rows.to_numpy().tobytes()


def _kept(batch: Batch, key: Hashable, content: bytes, made: Callable[[], _Index]) -> _Index:
    known: dict[bytes, _Index] = batch.derived.setdefault((_kept, key), {})
    index = known[content] if content in known else made()
    known[content] = index
    if len(known) > _KEPT:
        known.pop(next(iter(known)))
    return index
