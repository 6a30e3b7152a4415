"""BM25 over the words that pass a chain of filters, as LanceDB's full-text index has it.

LanceDB's chain in its own order: words of letters and digits, no very long ones, lower case, stems, and then no stop
words, neither in documents nor in queries; so stop words do not make a document long, and a query of nothing else
finds nothing. A stem counts once in a query, however often it is there. Runs of CJK characters are cut into every two
neighbours, as by `bm25s`: LanceDB takes a whole run as one word, which no query finds.

Source: LanceDB 0.26, `Index.fts()` without options: base tokenizer "simple", max_token_length 40, lower_case, stem,
remove_stop_words, ascii_folding; its BM25 is that of `bm25s` times k1 + 1, with k1 1.2 and b 0.75.
"""

from collections.abc import Callable
from dataclasses import dataclass

import Stemmer

from lcm.checks import check_choice, check_range
from lcm.retrieval.text_index.bm25s import Bm25sIndex, pairs_of, stems_of
from lcm.retrieval.text_index.words import load_stop_words, split_words


@dataclass(frozen=True, slots=True)
class Filtered:
    """Settings.

    Args:
        k1: how much a second occurrence counts, >= 0; 0 means not at all.
        b: how much a long document must pay, in [0, 1].
        stemmer: a Snowball language, or "none".
        stop_words: "english", "lucene" or "none"; no part of documents and queries.
        max_token_length: bytes of UTF-8; a word as long, or longer, is no part either.
    """

    k1: float = 1.2
    b: float = 0.75
    stemmer: str = "english"
    stop_words: str = "lucene"
    max_token_length: int = 40

    def __post_init__(self) -> None:
        check_range(self, "k1", ge=0)
        check_range(self, "b", ge=0, le=1)
        check_range(self, "max_token_length", ge=2)
        check_choice(self, stemmer={"none", *Stemmer.algorithms()})
        load_stop_words(self.stop_words)

    def build(self) -> Bm25sIndex:
        stop_words, stems = load_stop_words(self.stop_words), stems_of(self.stemmer)
        name = f"{self.stemmer}, without {self.stop_words} stop words, shorter than {self.max_token_length}"
        terms = _Terms(name, self.max_token_length, stop_words, stems)
        return Bm25sIndex(self.k1, self.b, terms, factor=self.k1 + 1)


@dataclass(frozen=True, slots=True)
class _Terms:
    name: str
    max_token_length: int
    stop_words: frozenset[str]
    stems: Callable[[list[str]], list[str]]

    def of_document(self, text: str) -> list[str]:
        words, runs = split_words(text)
        short = [word for word in words if len(word.encode()) < self.max_token_length]
        return [stem for stem in self.stems(short) if stem not in self.stop_words] + pairs_of(runs)

    def of_query(self, text: str) -> list[str]:
        return list(dict.fromkeys(self.of_document(text)))
