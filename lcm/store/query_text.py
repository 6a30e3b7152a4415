"""What a person types into a search, as full-text expressions and LIKE patterns.

Source: lossless-claw 0.6.3. Lengths and places are UTF-16 units.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lcm.encoding import well_formed
from lcm.javascript import WHITE_SPACE, trim

_CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_RUN = re.compile(f"[{_CJK}]+")
_LATIN = re.compile(r"[a-zA-Z0-9][\w./-]*", re.ASCII)
_WORD = re.compile(f"[^{WHITE_SPACE}]+")
_PHRASE_OR_WORD = re.compile(f'"([^"]+)"|([^{WHITE_SPACE}]+)')
_EDGES = "`'\"()[]{}<>.,:;!?*_+=|\\/-"

TRIGRAM = 3
"""Characters: a shorter run is in no trigram table."""
_TRIGRAM_WINDOW, _LIKE_WINDOW = 4, 2
_BEFORE, _AFTER, _SHORT = 24, 40, 80


class CjkQuery(NamedTuple):
    """A query with Chinese, Japanese or Korean in it: its runs, and its other words in lower case."""

    runs: tuple[str, ...]
    words: tuple[str, ...]


def match_expression(query: str, *, keeps_phrases: bool = False) -> str:
    """The query as an FTS5 expression in which no character has a meaning of its own: all words must occur.

    Args:
        query: what was typed.
        keeps_phrases: words between two quotation marks must stand side by side; False: marks are dropped.
    """
    if keeps_phrases:
        terms = [phrase or word for phrase, word in _PHRASE_OR_WORD.findall(query)]
        words = [word for term in terms if (word := trim(term.replace('"', "")))]
    else:
        words = [word.replace('"', "") for word in _WORD.findall(query)]
    return " ".join(f'"{word}"' for word in words) or '""'


def contains_cjk(text: str) -> bool:
    return _CJK_RUN.search(text) is not None


def like_terms(query: str) -> list[str]:
    """The phrases and words of a query as a substring search wants them: lower case, without marks around them."""
    found = (_bare(phrase or word) for phrase, word in _PHRASE_OR_WORD.findall(query))
    return list(dict.fromkeys(term for term in found if term)) or [term for term in [_bare(query)] if term]


def like_pattern(term: str) -> str:
    r"""The pattern of `LIKE ? ESCAPE '\'` for a text that holds the term."""
    escaped = re.sub(r"([\\%_])", r"\\\1", term)
    return f"%{escaped}%"


def cjk_query(query: str) -> CjkQuery:
    words = dict.fromkeys(word.lower() for word in _LATIN.findall(query))
    return CjkQuery(tuple(_CJK_RUN.findall(query)), tuple(words))


def trigram_expression(runs: Iterable[str]) -> str:
    """Each run, or one of its windows of 4, must occur."""
    return " AND ".join("(" + " OR ".join(f'"{part}"' for part in _parts(run, _TRIGRAM_WINDOW)) + ")" for run in runs)


def like_windows(run: str) -> list[str]:
    """One of these must occur, where there is no trigram to go by: the run, or its windows of 2."""
    return _parts(run, _LIKE_WINDOW)


def excerpt(text: str, terms: Sequence[str]) -> str:
    """The surroundings of the first term that occurs; of a text without any its beginning."""
    units = _as_units(text)
    lowered = units.lower()
    places = [(at, term) for term in map(_as_units, terms) if (at := lowered.find(term)) >= 0]
    if not places:
        cut = trim(units)
        return well_formed(cut if len(cut) <= _SHORT else f"{cut[: _SHORT - 3].rstrip(WHITE_SPACE)}...")
    at, term = min(places, key=lambda place: place[0])
    start, end = max(0, at - _BEFORE), min(len(units), at + max(len(term), 1) + _AFTER)
    return well_formed(f"{'...' * (start > 0)}{trim(units[start:end])}{'...' * (end < len(units))}")


def _parts(run: str, width: int) -> list[str]:
    if len(run) <= width:
        return [run]
    return list(dict.fromkeys(run[i : i + width] for i in range(len(run) - width + 1)))


def _bare(term: str) -> str:
    return trim(term).strip(_EDGES).lower()


def _as_units(text: str) -> str:
    """The text with one character for each UTF-16 unit."""
    if text.isascii() or max(text) <= "\uffff":
        return text
    return "".join(
        chr(int.from_bytes(pair, "little"))
        for raw in [text.encode("utf-16-le", "surrogatepass")]
        for pair in (raw[i : i + 2] for i in range(0, len(raw), 2))
    )
