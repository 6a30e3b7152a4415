"""Dreams: diary entries that are kept become documents, in the place of those of the same diary before.

A diary is Markdown: a bullet below a heading that speaks of dreams, deep sleep or promotion is an entry when it ends in
its numbers, `- words {score=0.8 recall=3 unique=2}`.

Source: libravdb memory 1.4.4.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

import polars as pl

from lcm.protocols.models import TokenEstimator
from lcm.records.document import Document
from lcm.store.store import Store

_DREAM = re.compile(r"\b(?:dream|dreams|dreamed|dreaming)\b", re.IGNORECASE | re.ASCII)


def asks_for_dreams(text: str) -> bool:
    """Say whether a question names a dream, as a whole word: then dreams answer it, and nothing else does.

    Source: libravdb memory 1.4.4.
    """
    return _DREAM.search(text) is not None


MIN_TEXT_BYTES = 16
MIN_SCORE = 0.6
MIN_RECALL_COUNT = 2
MIN_UNIQUE_QUERIES = 2

_PROMOTABLE = ("deep sleep", "promot", "dream")
_HEADING = re.compile(r"#{2,6}\s+(.*)")
_FENCES = ("```", "~~~")
_BULLET = re.compile(r"[-*+]\s+(.*)\{([^{}]*)\}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class DiaryEntry:
    """One bullet of a diary, with the numbers that it ends in."""

    text: str
    score: float
    recall_count: int
    unique_queries: int
    section: str = ""
    """The heading above it, in lower case."""
    line: int = 0
    """From 1."""

    @property
    def is_admitted(self) -> bool:
        """Said at enough length, and recalled well and often enough, to be kept."""
        return (
            len(self.text.strip().encode("utf-8", "surrogatepass")) >= MIN_TEXT_BYTES
            and MIN_SCORE <= self.score < math.inf
            and self.recall_count >= MIN_RECALL_COUNT
            and self.unique_queries >= MIN_UNIQUE_QUERIES
        )


def diary_entries(diary: str) -> list[DiaryEntry]:
    """Every entry of a diary, admitted or not, in order; what stands between fences is none."""
    entries = []
    section = ""
    for line, text in _unfenced(diary):
        if heading := _HEADING.fullmatch(text):
            section = " ".join(heading[1].lower().split())
        elif any(word in section for word in _PROMOTABLE) and (entry := _entry(text, section, line)):
            entries.append(entry)
    return entries


def _unfenced(diary: str) -> Iterator[tuple[int, str]]:
    """The lines outside fences, without the space around them, and their numbers from 1."""
    is_fenced = False
    for number, line in enumerate(_LINE_END.split(diary), 1):
        text = line.strip()
        if text.startswith(_FENCES):
            is_fenced = not is_fenced
        elif not is_fenced:
            yield number, text


def _entry(text: str, section: str, line: int) -> DiaryEntry | None:
    bullet = _BULLET.fullmatch(text)
    if bullet is None or not bullet[1].strip():
        return None
    pairs = (token.partition("=") for token in re.split(r"[\s,]+", bullet[2]))
    numbers = {key.lower(): value for key, _, value in pairs}
    score = _FLOAT.match(numbers.get("score", ""))
    recall = _INTEGER.match(numbers.get("recall", numbers.get("recallcount", "")))
    unique = _INTEGER.match(numbers.get("unique", numbers.get("uniquequeries", "")))
    if score is None or recall is None or unique is None:
        return None
    return DiaryEntry(bullet[1].strip(), float(score[0]), int(recall[0]), int(unique[0]), section, line)


DREAM = "dream"
"""The kind of its documents."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """What one diary changes; nothing where no entry is admitted, or where those that stand are the same."""

    documents: tuple[Document, ...]
    """To be added; their tokens are not counted yet."""
    ended: tuple[tuple[str, datetime], ...]
    """Ids of those that they stand in the place of, and when those end."""
    rejected: int
    """How many entries were not admitted."""


def promotion(
    entries: Sequence[DiaryEntry],
    source: str,
    user_id: str,
    scope: str,
    promoted_at: datetime,
    known: pl.DataFrame | None = None,
) -> Promotion:
    """What becomes of the entries of a diary.

    All that stand of the diary end together, and the admitted entries begin in the same instant. What ended stays in
    the store, so that a question of an earlier instant is answered as it was then. An id is
    `dream:USER/SOURCE#dream#NNNNNN`: the original's is what stands behind the slash, so that two users whose diaries
    have one name share ids; here they do not, and no number of a diary is given twice.

    Args:
        entries: of the whole diary.
        source: the diary's name.
        user_id: who dreamt.
        scope: who may find the dreams.
        promoted_at: from then on they are found.
        known: the documents of the store, as `Store.documents` reads them; None = there are none.

    Raises:
        ValueError: if nobody is named, or no diary.

    Source: libravdb memory 1.4.4.
    """
    source, user_id = source.strip(), user_id.strip()
    if not user_id:
        raise ValueError("user_id must name who dreamt, got a blank text")
    if not source:
        raise ValueError("source must name the diary, got a blank text")
    admitted = [entry for entry in entries if entry.is_admitted]
    rejected = len(entries) - len(admitted)
    earlier = _of_diary(known, source, user_id)
    standing = earlier.filter(pl.col("invalidated_at").is_null())
    texts = [entry.text.strip() for entry in admitted]
    if not admitted or (texts, {scope}) == (standing["text"].to_list(), set(standing["scope"])):
        return Promotion((), (), rejected)
    ends_at = max([promoted_at, *standing["created_at"]])
    documents = tuple(
        Document(
            document_id=f"{_prefix(source, user_id)}{len(earlier) + number:06d}",
            text=text,
            source_message_ids=(),
            conversation_id="",
            session_id="",
            created_at=ends_at,
            kind=DREAM,
            scope=scope,
            metadata={
                "source": source,
                "user_id": user_id,
                "section": entry.section,
                "line": entry.line,
                "score": entry.score,
                "recall_count": entry.recall_count,
                "unique_queries": entry.unique_queries,
            },
        )
        for number, (entry, text) in enumerate(zip(admitted, texts, strict=True))
    )
    return Promotion(documents, tuple((document_id, ends_at) for document_id in standing["document_id"]), rejected)


def promote(
    store: Store,
    token_estimator: TokenEstimator,
    diary: str,
    source: str,
    user_id: str,
    scope: str,
    promoted_at: datetime,
) -> Promotion:
    """Keep what a diary holds, in one transaction; a memory that is opened on the store afterwards finds it.

    The arguments are those of `promotion`; `diary` is the text of the whole diary.
    """
    with store.transaction():
        made = promotion(diary_entries(diary), source, user_id, scope, promoted_at, store.documents())
        tokens = token_estimator.count([document.text for document in made.documents])
        counted = [replace(document, tokens=n) for document, n in zip(made.documents, tokens, strict=True)]
        store.add_documents(counted)
        store.end_documents(made.ended)
    return replace(made, documents=tuple(counted))


def in_sight(documents: pl.DataFrame, text: str) -> pl.DataFrame:
    """The documents that may answer a question: dreams alone where it asks for dreams, else all but dreams.

    The original has no answer to who asks for dreams where there is none; here everything else may answer then.
    """
    is_dream = documents["kind"] == DREAM
    if not is_dream.any():
        return documents
    return documents.filter(is_dream if asks_for_dreams(text) else ~is_dream)


def is_dream_of(document_id: str, user_id: str | None) -> bool:
    """Whether a dream is that of a user; where none is named the workspace is one user's."""
    return user_id is None or document_id.startswith(f"{_of_user(user_id)}/")


def _of_user(user_id: str) -> str:
    return f"dream:{quote(user_id, safe='', errors='surrogatepass')}"


def _prefix(source: str, user_id: str) -> str:
    return f"{_of_user(user_id)}/{source}#dream#"


def _of_diary(known: pl.DataFrame | None, source: str, user_id: str) -> pl.DataFrame:
    """Every document that was ever made of the diary, by number."""
    if known is None:
        return _NOTHING
    number = pl.col("document_id").str.extract(f"^{re.escape(_prefix(source, user_id))}([0-9]{{6,}})$").cast(pl.Int64)
    return known.filter(pl.col("kind") == DREAM).filter(number.is_not_null()).sort(number)


_NOTHING = pl.DataFrame(
    schema={
        "document_id": pl.String,
        "text": pl.String,
        "scope": pl.String,
        "created_at": pl.Datetime("ms", "UTC"),
        "invalidated_at": pl.Datetime("ms", "UTC"),
    }
)
