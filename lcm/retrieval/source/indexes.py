"""Candidates from a memory's indexes of vectors and words, or from indexes of a source's own."""

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar, TypeVar

import numpy as np
import polars as pl

from lcm.checks import check_range
from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.protocols.contract import Contract
from lcm.protocols.models import Embedder
from lcm.protocols.retrieval import Batch, Raw, TextIndex, TextIndexChoice, Tiered, VectorIndex
from lcm.retrieval.frames import beside
from lcm.retrieval.indexes import embedded, embedded_texts
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.source.candidates import branch, merge
from lcm.retrieval.vector_index.exact import Exact

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
        if is_of_machine(error):
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
