"""The indexes of a workspace: made from its documents, never the truth."""

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from lcm.errors import StoreError
from lcm.faults import DamagedError, counting, made_again
from lcm.protocols.models import Embedder, Vectors
from lcm.protocols.retrieval import KeptIndex, TextIndex, TextIndexChoice, VectorIndexChoice
from lcm.retrieval.frames import KeptBeside
from lcm.retrieval.vector_index.exact import mean_direction, to_grid
from lcm.writing.new_document import embedded_text

_log = logging.getLogger(__name__)
_DIGESTED_AT_ONCE = 1 << 16
"""Documents, of whose columns one after another is digested."""
_JOINED_AT_ONCE = 1 << 12
"""Documents, of whose words a second copy is made at a time."""
_MOST_SCOPE_SETS = 16
"""Text indexes kept at a time; the one made first is dropped for another, and made again when it is asked for."""

ScopeSet = frozenset[str] | None
"""The scopes that a query may read; None = all."""


class Indexes:
    """One vector index, and a text index for each set of scopes that is asked for.

    A cosine depends on nothing but the two vectors, a BM25 on the words of the whole index: so that no score tells of
    documents that the asker may not read, each set of scopes has statistics of its own.
    """

    def __init__(
        self,
        embedder: Embedder,
        vector_index: VectorIndexChoice,
        text_index: TextIndexChoice,
        *,
        incidents: Counter[str],
    ) -> None:
        self.embedder = embedder
        self._vector_choice, self._text_choice, self._incidents = vector_index, text_index, incidents
        self.vector_index = vector_index.build(embedder.dim, incidents=incidents)
        self._text: dict[ScopeSet, TextIndex] = {None: text_index.build()}
        self._loaded: set[Path] = set()

    def text_index(self, scopes: Sequence[str] | None, documents: pl.DataFrame) -> TextIndex:
        """The text index over the documents of these scopes; `documents` are all of the workspace."""
        key = None if scopes is None else frozenset(scopes)
        if key not in self._text:
            if len(self._text) >= _MOST_SCOPE_SETS:
                del self._text[next(kept for kept in self._text if kept is not None)]
            self._text[key] = self._text_choice.build()
            _add_words(self._text[key], documents, key)
        return self._text[key]

    def embed(self, texts: Sequence[str]) -> list[Vectors]:
        """The vectors of each text, one a window: shape (windows, dim)."""
        return embedded(self.embedder, texts)

    def add(self, documents: pl.DataFrame, vectors: Sequence[Vectors]) -> None:
        """Take in documents that the indexes lack, with the vectors of each: one row a window."""
        if documents.is_empty():
            return
        self._add_vectors(documents, vectors)
        for scopes, index in self._text.items():
            _add_words(index, documents, scopes)

    def fill(self, documents: pl.DataFrame, path: Path | None) -> None:
        """Take in all documents of a workspace that was opened, with what is kept beside its file where that fits."""
        files = None if path is None or documents.is_empty() else self._files(path, documents)
        if files is None or not self._is_loaded(self.vector_index, files.vectors, len(documents)):
            self.vector_index = self._vector_choice.build(self.embedder.dim, incidents=self._incidents)
            self._add_vectors(documents, self.embed(embedded_texts(documents)))
        if files is None or not self._is_loaded(self._text[None], files.words, len(documents)):
            self._text[None] = self._text_choice.build()
            _add_words(self._text[None], documents, None)

    def save(self, path: Path, documents: pl.DataFrame) -> None:
        """Keep what the indexes hold of the documents, all of the workspace, beside its file."""
        files = self._files(path, documents)
        if self._write(files, documents):
            # An index may have several files.
            ours = re.compile(rf"{re.escape(path.name)}\.[0-9a-f]{{16}}\.(vectors(\.\d+)?|words)")
            for stale in path.parent.iterdir():
                if ours.fullmatch(stale.name) and not stale.name.startswith((files.vectors.name, files.words.name)):
                    stale.unlink(missing_ok=True)

    def copy_to(self, path: Path, documents: pl.DataFrame) -> None:
        """Keep the same beside another file, which holds the same documents."""
        self._write(self._files(path, documents), documents)

    def _is_loaded(self, index: KeptIndex, file: Path, documents: int) -> bool:
        """Fill an index from its file; false where none is there that fits."""
        if not file.exists():
            return False
        try:
            index.load(file)
        except StoreError as error:
            if isinstance(error.__cause__, DamagedError | OSError):
                with counting(self._incidents):
                    made_again("index", f"{error}: made again from the store")
            else:
                _log.warning("%s: made again from the store", error)
        if len(index) != documents:
            return False
        self._loaded.add(file)
        return True

    def _write(self, files: "_Files", documents: pl.DataFrame) -> bool:
        """Write what is not there already of the indexes that hold every document; whether there was such."""
        indexes = (self.vector_index, files.vectors), (self._text[None], files.words)
        unwritten = [
            (index, file) for index, file in indexes if 0 < len(index) == len(documents) and file not in self._loaded
        ]
        for index, file in unwritten:
            index.save(file)
        return bool(unwritten)

    def _add_vectors(self, documents: pl.DataFrame, vectors: Sequence[Vectors]) -> None:
        if documents.is_empty():
            return
        owners = [i for i, rows in zip(documents["document_id"], vectors, strict=True) for _ in rows]
        self.vector_index.add(owners, np.concatenate(vectors))

    def _files(self, path: Path, documents: pl.DataFrame) -> "_Files":
        """Named by what they must hold, so that a stale one is simply not found."""
        content = _content_of(documents)
        vectors = hashlib.sha256(f"{self.embedder.name} {content}".encode()).hexdigest()
        return _Files(
            *(path.with_name(f"{path.name}.{end}") for end in (f"{vectors[:16]}.vectors", f"{content[:16]}.words"))
        )


class _Files(NamedTuple):
    """The files of the indexes of a workspace."""

    vectors: Path
    words: Path


def _content(documents: pl.DataFrame) -> str:
    """A digest of what the indexes are made of."""
    digest = hashlib.sha256()
    for start in range(0, len(documents), _DIGESTED_AT_ONCE):
        for name in ("document_id", "text", "content"):
            values = documents[name].slice(start, _DIGESTED_AT_ONCE)
            digest.update(values.str.len_bytes().to_numpy().astype("<u4").tobytes())
            for part in values.to_frame().iter_slices(_JOINED_AT_ONCE):
                digest.update(part[name].str.join("").item().encode())
    return digest.hexdigest()


_content_of = KeptBeside(_content, 1)


def embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vectors]:
    """The vectors of each text, one a window: shape (windows, dim)."""
    pieces = embedder.windows(texts)
    rows = embedder.embed([piece for windows in pieces for piece in windows], "document")
    ends = np.cumsum([len(windows) for windows in pieces])
    return np.split(rows, ends[:-1]) if texts else []


def embedded_texts(documents: pl.DataFrame) -> list[str]:
    """What is embedded of each document."""
    if documents.is_empty():
        return []
    return [embedded_text(text, content) for text, content in documents.select("text", "content").iter_rows()]


def mean_vector(windows: Vectors) -> Vectors:
    """The normalised mean of a text's windows, shape (1, dim): bit for bit what `VectorIndex.vectors_of` gives."""
    rows = to_grid(windows, windows.shape[1])
    if len(rows) == 1:
        return rows
    return mean_direction(rows)[np.newaxis]


def _add_words(index: TextIndex, documents: pl.DataFrame, scopes: ScopeSet) -> None:
    if documents.is_empty():
        return
    readable = documents if scopes is None else documents.filter(pl.col("scope").is_in(list(scopes)))
    index.add(readable["document_id"].to_list(), readable["text"].to_list())
