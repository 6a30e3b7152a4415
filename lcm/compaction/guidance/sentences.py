"""Text to sentences of plain lower-case words that remember where they stood."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import yaml
from rapidfuzz.distance import OSA

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`+[^`\n]+`+")
_QUOTE = re.compile(r'"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]')
_BULLET = re.compile(r"[ \t]*(?:(?:[-*+•–]|\d{1,3}[.)]|#{1,6}|>|\[[ xX]?\])[ \t]+)*")
_TOKEN = re.compile(r"[^\W_]+(?:[-'’.@/_+#&%*][^\W_]+)*%?|->|=>|\.{3}|\S")
_ENDS = frozenset(".!?…")
_SHORTEST_TYPO = 5
_WRAPPED_LENGTH = 50
_LONGEST_SENTENCE = 200  # words: patterns take time quadratic in what is no prose


class Word(NamedTuple):
    """One word or mark."""

    text: str
    start: int
    """Code point offset in the text."""
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words and marks, a single space between two of them."""

    words: tuple[Word, ...]
    is_item: bool
    """Behind a bullet, a number or a heading's mark."""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """What is written otherwise than said."""

    forms: Mapping[str, tuple[str, ...]]
    endings: Mapping[str, tuple[str, ...]]
    cues: tuple[str, ...]
    abbreviations: frozenset[str]
    not_prose: re.Pattern[str]


@cache
def _spelling() -> _Spelling:
    words = yaml.safe_load(resources.files("lcm.compaction.guidance").joinpath("spelling.yaml").read_text("utf-8"))
    return _Spelling(
        forms={short: tuple(full.split()) for short, full in words["forms"].items()},
        endings={ending: tuple(full.split()) for ending, full in words["endings"].items()},
        cues=tuple(words["cues"].split()),
        abbreviations=frozenset(words["abbreviations"].split()),
        not_prose=re.compile(words["not_prose"]),
    )


def sentences(text: str) -> Iterator[Sentence]:
    """Every sentence of a text outside of code blocks.

    Code and quotations within a line become the single words `code` and `quote`; contractions are spelt out ("don't" is
    do not), and a misspelt cue word is put right. A line that begins in lower case goes on with the one before, if that
    one is long enough to have been wrapped, unless a bullet or an empty line stands between.
    """
    masked = _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for start, end, is_item in _blocks(masked):
        yield from _split(list(_words(masked, start, end)), is_item)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, is an item) of every paragraph or item; a line may belong to the block of the line before."""
    block: tuple[int, int, bool] | None = None
    place = 0
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if _spelling().not_prose.match(line):
            line = " " * (len(line) - 1) + "\n"
        mark = _BULLET.match(line)
        content = place + (mark.end() if mark else 0)
        is_item = bool(mark and mark.group().strip())
        body = line[content - place :].strip()
        before = lines[i - 1].rstrip() if i else ""
        is_wrapped = len(before) >= _WRAPPED_LENGTH and before[-1] not in _ENDS | {":"}
        if block is not None and is_wrapped and not is_item and body[:1].islower():
            block = (block[0], place + len(line), block[2])
        else:
            if block is not None:
                yield block
            block = (content, place + len(line), is_item) if body else None
        place += len(line)
    if block is not None:
        yield block


def _words(text: str, start: int, end: int) -> Iterator[Word]:
    part = text[start:end]
    for pattern, name in ((_CODE, "code"), (_QUOTE, "quote")):
        part = pattern.sub(lambda found, name=name: name.ljust(len(found.group()), "\0"), part)  # type: ignore[misc]
    for found in _TOKEN.finditer(part.replace("\0", " ")):
        first, last = start + found.start(), start + found.end()
        for word in _plain(found.group().lower().replace("’", "'")):
            yield Word(word, first, last)


def _plain(word: str) -> tuple[str, ...]:
    known = _spelling()
    if word in known.forms:
        return known.forms[word]
    for ending, full in known.endings.items():
        if word.endswith(ending) and len(word) > len(ending):
            return (word[: -len(ending)], *full)
    if len(word) >= _SHORTEST_TYPO and word.isalpha():
        for cue in known.cues:
            # The first and the last letter of a misspelt word are mostly right, those of an inflected one are not.
            is_like = word[0] == cue[0] and (word[-1] == cue[-1] or sorted(word) == sorted(cue))
            if is_like and OSA.distance(word, cue, score_cutoff=1) == 1:
                return (cue,)
    return (word,)


def _split(words: list[Word], is_item: bool) -> Iterator[Sentence]:
    begin = 0
    for i, word in enumerate(words):
        is_last = i + 1 == len(words)
        if word.text[0] in _ENDS:
            is_abbreviation = word.text == "." and i > begin and words[i - 1].text in _spelling().abbreviations
            if not is_last and (is_abbreviation or words[i + 1].text[0] in _ENDS):
                continue
            if i > begin:
                yield Sentence(tuple(words[begin : i + 1]), is_item)
            begin = i + 1
        elif is_last or i + 1 - begin >= _LONGEST_SENTENCE:
            yield Sentence(tuple(words[begin : i + 1]), is_item)
            begin = i + 1
