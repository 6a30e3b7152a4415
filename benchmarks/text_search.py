"""Many queries to the text indexes, against SQLite's FTS5 and the bm25s library themselves."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import bm25s
import Stemmer

from benchmarks import corpus
from benchmarks.search import TARGET, Search
from benchmarks.timing import Comparison, median_seconds
from lcm.retrieval.text_index import Bm25s, Fts5
from lcm.text import load_stop_words, query_words, split_words

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Fts5Search(Search):
    """`Fts5Index.search` against the same MATCH expressions on an equal table.

    Ours makes the expressions, and names its results.
    """

    index: Fts5

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        texts, queries = _texts(self.documents, self.queries, seed)
        index = self.index.build()
        index.add(self.ids, texts)
        matches = [" OR ".join(f'"{word}"' for word in _words(query, self.index.stop_words)) for query in queries]
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.execute(
                "CREATE VIRTUAL TABLE words USING fts5(text, tokenize = 'porter unicode61 remove_diacritics 2')"
            )
            connection.execute("BEGIN")
            rows = [(row_id, " ".join(split_words(text)[0])) for row_id, text in enumerate(texts, start=1)]
            connection.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", rows)
            connection.execute("COMMIT")

            def bare() -> list[list[tuple[int, float]]]:
                return [
                    connection.execute(
                        "SELECT rowid, -bm25(words) AS score FROM words WHERE words MATCH ? "
                        "ORDER BY score DESC, rowid LIMIT ?",
                        (match, self.k),
                    ).fetchall()
                    for match in matches
                ]

            def scores(found: list[list[tuple[int, float]]]) -> list[list[float]]:
                return [[score for _, score in rows] for rows in found]

            ours = partial(index.search, queries, self.k)
            return self.compared("fts5 search", ours, bare, scores, repeats, tolerance=_TOLERANCE, target=TARGET)


@dataclass(frozen=True, slots=True)
class Bm25sSearch(Search):
    """`Bm25sIndex.search` against `bm25s.BM25.retrieve` of the same tokens.

    Ours makes the tokens, and names its results. The fact `scores_alone_us` is what the library takes for a query's
    scores, without picking the best.
    """

    index: Bm25s

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        texts, queries = _texts(self.documents, self.queries, seed)
        index = self.index.build()
        index.add(self.ids, texts)
        stem = (lambda words: words) if self.index.stemmer == "none" else Stemmer.Stemmer(self.index.stemmer).stemWords
        numbers: dict[str, int] = {}
        numbered = [[numbers.setdefault(t, len(numbers)) for t in stem(split_words(text)[0])] for text in texts]
        library = bm25s.BM25(k1=self.index.k1, b=self.index.b, method="lucene", dtype="float64")
        library.index((numbered, dict(numbers)), show_progress=False)  # it adds a word to the map that it is given
        terms = [[numbers.get(term) for term in stem(_words(query, self.index.stop_words))] for query in queries]
        known = [[number for number in row if number is not None] for row in terms]
        # The library refuses a query without a word that it knows.
        asked = [row for row in known if row]
        queries = [query for query, row in zip(queries, known, strict=True) if row]

        def bare() -> bm25s.Results:
            return library.retrieve(asked, k=self.k, sorted=True, show_progress=False)

        def facts() -> dict[str, float]:
            scored_s = median_seconds(lambda: lambda: [library.get_scores_from_ids(row) for row in asked], repeats)
            return {"scores_alone_us": 1e6 * scored_s / len(asked)}

        return self.compared(
            "bm25s search",
            partial(index.search, queries, self.k),
            bare,
            lambda found: [row[row > 0] for row in found.scores],
            repeats,
            tolerance=_TOLERANCE,
            target=TARGET,
            queries=len(asked),
            facts=facts,
        )


def _texts(documents: int, queries: int, seed: int) -> tuple[list[str], list[str]]:
    texts = [message.content for message in corpus.transcript(documents, seed).messages]
    return texts, [query.text for query in corpus.queries(queries, seed)]


def _words(query: str, stop_words: str) -> list[str]:
    return query_words(split_words(query)[0], load_stop_words(stop_words), is_alone=True)
