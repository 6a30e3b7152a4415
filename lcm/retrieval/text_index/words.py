"""The one way from text to words, for documents and queries alike.

Text is decomposed (NFKD), case-folded, stripped of marks (accents, points, vowel signs) and composed again,
so `Café`, `CAFE` and full-width `ＣＡＦＥ` are one word. A word is a run of letters and digits; an apostrophe
separates. Runs of Chinese, Japanese and Korean are given apart: each index cuts them in its own way.
"""

import functools
import re
import unicodedata
from collections.abc import Container, Iterable
from importlib import resources

WORDS = f"1, Unicode {unicodedata.unidata_version}"
"""Names what `split_words` makes of texts: indexes of other words are made again."""
CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # folding turns other widths into these
_RUN = re.compile(rf"(?P<cjk>(?:(?=[{CJK}])[^\W_])+)|(?:(?![{CJK}])[^\W_])+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_LISTS = ("english", "lucene")
_VOICING_MARKS = "\u3099\u309a"  # with one, Japanese か is が: another sound, not an accent


def split_words(text: str) -> tuple[list[str], list[str]]:
    """The words of a text and its runs of CJK characters, each in order and with repetitions."""
    folded = text.lower() if text.isascii() else _fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded), []
    words: list[str] = []
    cjk_runs: list[str] = []
    for match in _RUN.finditer(folded):
        (cjk_runs if match["cjk"] else words).append(match[0])
    return words, cjk_runs


def windows(run: str, width: int) -> list[str]:
    """Every `width` neighbouring characters, overlapping; a shorter run is its own only window."""
    return [run[start : start + width] for start in range(max(len(run) - width, 0) + 1)]


def query_words(words: Iterable[str], stop_words: Container[str], *, is_alone: bool) -> list[str]:
    """The distinct words to rank by: no stop words, unless they are all there is and stand alone."""
    distinct = list(dict.fromkeys(words))
    kept = [word for word in distinct if word not in stop_words]
    return kept if kept or not is_alone else distinct


@functools.cache
def load_stop_words(name: str) -> frozenset[str]:
    """Read the list `english`, `lucene` or `none`.

    Raises:
        ValueError: if there is no such list.
    """
    if name == "none":
        return frozenset()
    if name not in _LISTS:
        raise ValueError(f"unknown stop_words {name!r}; choose one of: {', '.join(sorted([*_LISTS, 'none']))}")
    text = resources.files("lcm.retrieval.text_index").joinpath(f"stop_words_{name}.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def _fold(text: str) -> str:
    bare = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    for character in set(_NOT_ASCII.findall(bare)):  # a text has few distinct ones
        if _is_mark(character):
            bare = bare.replace(character, "")
    return unicodedata.normalize("NFC", bare)


def _is_mark(character: str) -> bool:
    return character not in _VOICING_MARKS and unicodedata.category(character)[0] == "M"
