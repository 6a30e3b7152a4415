"""Numbers with their units or their labels."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import content_words, label

_UNITS = {
    "time": "ms|milliseconds?|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|months?|years?",
    "size": "bytes?|[kKMGT]i?B|[kmgt]b",
    "length": "mm|cm|m|km|meters?|metres?|kilomet[er]{2}s?|miles?|ft|feet|inch(?:es)?",
    "mass": "mg|g|kg|grams?|kilos?|pounds?|lbs?|oz|tons?|tonnes?",
    "volume": "ml|cl|dl|l|lit[er]{2}s?|cups?|tbsp|tsp|cubic met[er]{2}s?|m3|m³",
    "money": "EUR|USD|GBP|SEK|NOK|DKK|CHF|JPY|CAD|AUD|PLN|euros?|dollars?|pounds sterling|kr|kronor|cents?|bucks|€|"
    "\\$|£|¥|円|元|ユーロ",
    "share": "%|per ?cent|percent|pp|bps",
    "heat": "°C|°F|°|degrees?|K",
    "power": "W|kW|MW|kWh|V|A|Hz|kHz|MHz|GHz|rpm|mph|km/h|fps|qps|rps|bps",
    "count": "tokens?|tests?|files?|lines?|rows?|messages?|requests?|users?|people|persons?|guests?|items?|pages?|"
    "commits?|retries|times|units?|plots?|tickets?|nights?|seats?|rooms?|words?|chars|characters|points?|steps?|"
    "queries|errors?|warnings?|workers?|cores?|threads?|samples?|stations?|slots?|calories|kcal|人|個|本|冊|つ|日間|泊|分|時間",
}
_DIMENSION = {name: re.compile(f"(?:{units})") for name, units in _UNITS.items()}
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER = r"[-+]?(?:\d{1,3}(?:[,  ]\d{3})+|\d+)(?:\.\d+)?"
_NUMBER_WORD = rf"(?i:{'|'.join(_WORDS[1:])})(?=\s)"
_ANY_UNIT = "|".join(sorted((unit for units in _UNITS.values() for unit in units.split("|")), key=len, reverse=True))
_WITH_UNIT = re.compile(
    rf"(?<![\w.:/#-])(?:(?P<sign>[€$£¥])\s?(?P<sum>{_NUMBER})(?P<scale>[kKmM]|\s?(?:million|billion|thousand))?(?!\w)"
    rf"|(?P<number>{_NUMBER}|{_NUMBER_WORD})(?P<gap>\s?|-)(?P<unit>{_ANY_UNIT})(?![\w/]))"
)
_LABELLED = re.compile(
    rf"(?P<label>[A-Za-z_][\w.-]{{1,40}})[\"'`*]*\s*(?:=|:|\bis(?: now)?|\bwas)\s*[\"'`*]*"
    rf"(?P<number>{_NUMBER})(?![\w:/-]|[.,]\d)"
)


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number is about the two content words nearest before it, in its unit's dimension."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for place in read.sentences:
            sentence = read.words(place)
            taken: list[tuple[int, int]] = []
            for match in _WITH_UNIT.finditer(sentence):
                taken.append(match.span())
                yield _with_unit(match, sentence, place[0])
            for match in _LABELLED.finditer(sentence):
                start, end = match.span("number")
                is_taken = any(first < end and start < last for first, last in taken)
                if not is_taken and not _is_year(match["number"]) and content_words(match["label"]):
                    key = f"{label(sentence[: match.end('label')], '')} number"
                    yield _statement(key, _plain(match["number"]), sentence, (match.start(), end), place[0])


def _with_unit(match: re.Match[str], sentence: str, start: int) -> Statement:
    if match["sign"]:
        number, unit, dimension = match["sum"] + (match["scale"] or "").strip().lower(), match["sign"], "money"
    else:
        number, unit = match["number"], match["unit"]
        dimension = next(name for name, units in _DIMENSION.items() if units.fullmatch(unit))
    about = label(sentence[: match.start()], sentence[match.end() :])
    value = f"{_plain(number)} {_unit(unit, dimension)}"
    return _statement(f"{about} {dimension}".strip(), value, sentence, match.span(), start)


def _statement(key: str, value: str, sentence: str, span: tuple[int, int], start: int) -> Statement:
    first, last = span
    return Statement("number", key, value, sentence[first:last], start + first, start + last)


def _plain(number: str) -> str:
    return str(_WORDS.index(word) + 1) if (word := number.lower()) in _WORDS else re.sub(r"[,  +]", "", number)


def _unit(unit: str, dimension: str) -> str:
    """One spelling: `seconds`, `secs` and `s` are `s`."""
    unit = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy"}.get(unit, unit.casefold() if len(unit) > 1 else unit)
    short = {"sec": "s", "second": "s", "minute": "min", "hour": "h", "hr": "h", "euro": "eur", "dollar": "usd",
             "per cent": "%", "percent": "%", "millisecond": "ms", "metre": "m", "meter": "m", "gram": "g",
             "liter": "l", "litre": "l", "person": "people"}  # fmt: skip
    bare = unit.removesuffix("s") if dimension not in ("size",) and len(unit) > 2 else unit
    return short.get(bare, bare)


def _is_year(number: str) -> bool:
    return len(number) == 4 and number[:2] in ("19", "20")
