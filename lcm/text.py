"""Text cut into words, stems and sentences: one cutter of each, for whatever is indexed, compared or summarised.

`split_words` decomposes a text (NFKD), folds its case, strips it of marks (accents, points, vowel signs) and composes
it again, so `Café`, `CAFE` and full-width `ＣＡＦＥ` are one word. A word is a run of letters and digits; an apostrophe
separates. Runs of Chinese, Japanese and Korean, which put no spaces between words, are given apart.
"""

import functools
import re
import unicodedata
from collections.abc import Container, Iterable, Sequence
from importlib import resources
from typing import Literal

import Stemmer

from lcm.checks import check_choice

WORDS = f"1, Unicode {unicodedata.unidata_version}"
"""Names what `split_words` makes of texts: indexes of other words are made again."""
CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"  # folding turns other widths into these
WordRules = Literal["unicode", "ascii", "han"]

_RUN = re.compile(rf"(?P<cjk>(?:(?=[{CJK}])[^\W_])+)|(?:(?![{CJK}])[^\W_])+")
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_ASCII_IDENTIFIER = re.compile(r"[a-z0-9_]+")
_HAN = (  # Unicode's script of that name
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufa6d"
    "\ufa70-\ufad9\U00016fe2\U00016fe3\U00016ff0\U00016ff1\U00020000-\U0002a6df\U0002a700-\U0002ebe0\U0002ebf0-\U0002ee5d"
    "\U0002f800-\U0002fa1d\U00030000-\U0003134a\U00031350-\U000323af"
)
_HAN_WORD = re.compile(rf"[{_HAN}]|(?:(?![{_HAN}])[^\W_])+")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_CJK = re.compile(f"[{CJK}]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_VOICING_MARKS = "\u3099\u309a"  # with one, Japanese か is が: another sound, not an accent
_LISTS = ("english", "lucene")


def split_words(text: str) -> tuple[list[str], list[str]]:
    """The words of a text and its runs of CJK characters, each in order and with repetitions."""
    folded = fold(text)
    if folded.isascii():
        return _ASCII_WORD.findall(folded), []
    words: list[str] = []
    cjk_runs: list[str] = []
    for match in _RUN.finditer(folded):
        (cjk_runs if match["cjk"] else words).append(match[0])
    return words, cjk_runs


def words_in(text: str, rules: WordRules = "unicode", without: Container[str] = ()) -> list[str]:
    """The words of a text, in order and with repetitions.

    Args:
        text: that is cut.
        rules: `unicode` = as `split_words`, and behind them the pairs of neighbours of CJK runs; `ascii` = runs of a-z,
            0-9 and underscore, in lower case; `han` = runs of letters and digits in lower case, each Han character one.
        without: words that are left out; pairs are not.
    Source: libravdb memory 1.4.4 for `ascii`, memory-lancedb-pro for `han`; `unicode` is ours.
    """
    if rules == "unicode":
        found, runs = split_words(text)
        return [word for word in found if word not in without] + pairs(runs)
    lowered = text.lower()
    cut = _ASCII_IDENTIFIER if rules == "ascii" else _ASCII_WORD if lowered.isascii() else _HAN_WORD
    return [word for word in cut.findall(lowered) if word not in without]


def windows(run: str, width: int) -> list[str]:
    """Every `width` neighbouring characters, overlapping; a shorter run is its own only window."""
    return [run[start : start + width] for start in range(max(len(run) - width, 0) + 1)]


def pairs(runs: Iterable[str]) -> list[str]:
    """Every two neighbours of runs of CJK characters; a character that stands alone is a term itself."""
    return [pair for run in runs for pair in windows(run, 2)]


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
    text = resources.files("lcm").joinpath(f"stop_words_{name}.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def stems(words: Sequence[str], language: str) -> list[str]:
    """The stems of words, by Snowball; words as they are for the language "none"."""
    return list(words) if language == "none" else _stemmer(language).stemWords(words)


@functools.lru_cache(maxsize=100_000)
def stem(word: str) -> str:
    """The stem of a word: Russian of Cyrillic letters, else English."""
    return stems([word], "russian" if is_cyrillic(word) else "english")[0]


def check_stemmer(component: object) -> None:
    """Refuse a `stemmer` that is neither a Snowball language nor "none".

    Raises:
        ValueError: naming the languages.
    """
    check_choice(component, stemmer={"none", *Stemmer.algorithms()})


def is_cjk(word: str) -> bool:
    """Whether a word begins with a Chinese, Japanese or Korean character."""
    return _CJK.match(word) is not None


def is_cyrillic(word: str) -> bool:
    return _CYRILLIC.search(word) is not None


@functools.cache
def _stemmer(language: str) -> Stemmer.Stemmer:
    return Stemmer.Stemmer(language)


def fold(text: str) -> str:
    """A text without case and marks, as its words are."""
    if text.isascii():
        return text.lower()
    bare = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    for character in set(_NOT_ASCII.findall(bare)):  # a text has few distinct ones
        if _is_mark(character):
            bare = bare.replace(character, "")
    return unicodedata.normalize("NFC", bare)


def _is_mark(character: str) -> bool:
    return character not in _VOICING_MARKS and unicodedata.category(character)[0] == "M"


_CLOSERS = "\"')]}”’»」』）］】〉》*_`"
_OPENERS = "\"'([{“‘«「『（［【〈《*_`¿¡-–—#"
_END_BEFORE_SPACE = ".!?…。！？｡．؟۔।॥"
# White space is read as whole runs, so that a long one costs no more than its length. CJK sentences end without it.
_PLACE = re.compile(
    r"\s+|(?:[。！？｡][。！？｡!?…]*+|．(?!\d)|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[!?]++"
    r"(?=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))[\"')\]}”’»」』）］】〉》]*+(?=\S)"
)
_LINE_END = re.compile(r"[\n\r\x85\u2028\u2029]")
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # e.g, U.S, Ph.D: the last dot is the candidate itself

_NEVER_LAST = {
    "mr", "mrs", "ms", "mx", "dr", "prof", "gen", "sen", "rep", "gov", "capt", "col", "lt", "sgt", "rev", "hon", "st",
    "mt", "ft", "vs", "cf", "viz", "ie", "eg",
}  # fmt: skip
_LAST_BEFORE_CAPITAL = {
    "etc", "inc", "ltd", "co", "corp", "llc", "jr", "sr", "al", "dept", "est", "a.m", "p.m", "ph.d", "approx", "resp",
    "incl", "excl",
}  # fmt: skip
_NOT_BEFORE_DIGIT = {
    "no", "nos", "nr", "fig", "figs", "vol", "vols", "p", "pp", "ch", "chap", "sec", "sect", "art", "eq", "eqs", "ver",
    "v", "ca", "c", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec",
}  # fmt: skip


def sentences(text: str) -> list[str]:
    """Cut a text into sentences whose concatenation is exactly the text.

    A sentence ends with its line; with `. ! ? …` (and their Arabic and Indic kin) and closing quotes before white
    space; with `。！？` wherever they stand. White space after it belongs to it, indentation to its line. Numbers, URLs
    and paths hold no white space and stay whole; a known abbreviation ("e.g.", "Dr."), an initial ("J. Smith") and the
    number of a list item end nothing. No piece is blank unless the whole text is.

    Source: ours.
    """
    pieces = []
    start = word_at = line_at = 0
    for place in _PLACE.finditer(text):
        at, end = place.span()
        if end == len(text):
            break
        if not text[at].isspace():
            pieces.append(text[start:end])
            start = word_at = end
            continue
        if at == 0:
            word_at = line_at = end
            continue
        if line_ends := [match.end() for match in _LINE_END.finditer(text, at, end)]:
            boundary, line_at = line_ends[-1], end
        elif _ends_sentence(text[word_at:at], text[end : end + 4], word_at == line_at):
            boundary = end
        else:
            word_at = end
            continue
        pieces.append(text[start:boundary])
        start, word_at = boundary, end
    return [*pieces, text[start:]] if text else []


def _ends_sentence(word: str, following: str, begins_line: bool) -> bool:
    """Say whether white space after the word, and before the following characters, parts two sentences."""
    core = word.rstrip(_CLOSERS)
    if not core or core[-1] not in _END_BEFORE_SPACE:
        return False
    first = (following.lstrip(_OPENERS) or following)[0]
    if core[-1] != ".":
        return not (first.islower() and (core[-1] == "…" or core != word))
    stem = core.rstrip(".").lstrip(_OPENERS)
    if len(core.rstrip(".")) < len(core) - 1:
        return not first.islower()
    key = stem.casefold()
    if key in _LAST_BEFORE_CAPITAL:
        return not first.islower() and not first.isdigit()
    if key in _NEVER_LAST or _DOTTED.fullmatch(stem):
        return False
    if first.isdigit() and key in _NOT_BEFORE_DIGIT:
        return False
    if stem.isdecimal():
        return not begins_line and not first.islower()
    if len(stem) == 1 and stem.isalpha():
        return not begins_line and (stem == "I" or not (stem.isupper() and first.isupper()))
    return True
