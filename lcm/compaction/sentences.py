"""A text cut into its sentences, nothing left out."""

import re

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
