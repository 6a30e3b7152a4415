"""Numbers with their units or their labels, days and times of day."""

import re
from collections.abc import Iterator

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import content_words, folded, label

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


def numbers(read: ReadText) -> Iterator[Statement]:
    """A number is about the two content words nearest before it, in its unit's dimension."""
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
                yield _number(key, _plain(match["number"]), sentence, (match.start(), end), place[0])


def _with_unit(match: re.Match[str], sentence: str, start: int) -> Statement:
    if match["sign"]:
        number, unit, dimension = match["sum"] + (match["scale"] or "").strip().lower(), match["sign"], "money"
    else:
        number, unit = match["number"], match["unit"]
        dimension = next(name for name, units in _DIMENSION.items() if units.fullmatch(unit))
    about = label(sentence[: match.start()], sentence[match.end() :])
    value = f"{_plain(number)} {_unit(unit, dimension)}"
    return _number(f"{about} {dimension}".strip(), value, sentence, match.span(), start)


def _number(key: str, value: str, sentence: str, span: tuple[int, int], start: int) -> Statement:
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


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WEEKDAY = r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day"
_DAY = re.compile(
    r"(?<![\w/.-])(?:"
    r"(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?:(?:on\s+)?{_WEEKDAY},?\s+(?:the\s+)?)?(?P<d1>[12]?\d|3[01])(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m1>{_MONTH})(?:,?\s+(?P<y1>\d{{4}}))?"
    rf"|(?:(?:on\s+)?{_WEEKDAY},?\s+)?(?P<m2>{_MONTH})\s+(?P<d2>[12]?\d|3[01])(?:st|nd|rd|th)?(?!\d)(?:,?\s+(?P<y2>\d{{4}}))?"
    r"|(?P<numeric>\d{1,2}[./]\d{1,2}[./]\d{2,4})"
    rf"|(?P<m3>{_MONTH})\s+(?P<y3>\d{{4}})"
    r"|(?P<cjk>(?:\d{2,4}年)?\d{1,2}月\d{1,2}[日号])"
    rf"|(?P<said>(?:(?:next|last|this|coming|on)\s+)?(?:{_WEEKDAY}(?:\s+(?:the\s+\d{{1,2}}(?:st|nd|rd|th)|morning|afternoon|evening|night))?)"
    r"|(?:next|last)\s+(?:week(?:end)?|month|year|spring|summer|autumn|fall|winter)"
    r"|\d+\s+(?:days?|weeks?|months?|years?)\s+ago|tomorrow|yesterday|tonight|in\s+(?:19|20)\d\d|in\s+(?:january|february|march|april|may|june|july|august|september|october|november|december)|the\s+\d{1,2}(?:st|nd|rd|th))"
    r")(?![\w/-])",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?<![\w:.])(?:[01]?\d|2[0-3])(?::[0-5]\d(?:\s?[ap]\.?m\b\.?)?|\s?[ap]\.?m\b\.?)(?![\w:])|\b(?:noon|midnight)\b",
    re.IGNORECASE,
)


def dates(read: ReadText) -> Iterator[Statement]:
    """A day or a time is about the two content words nearest before it in its sentence, else behind it."""
    for place in read.places:
        sentence = read.words(place)
        for match in _DAY.finditer(sentence):
            yield _date(match, sentence, place[0], "day", _day(match))
        for match in _CLOCK.finditer(sentence):
            yield _date(match, sentence, place[0], "clock", match[0].lower().replace(" ", "").replace(".", ""))


def _date(match: re.Match[str], sentence: str, start: int, what: str, value: str) -> Statement:
    before = _CLOCK.sub(" ", _DAY.sub(" ", sentence[: match.start()]))
    behind = _CLOCK.sub(" ", _DAY.sub(" ", sentence[match.end() :]))
    key = f"{label(before, behind)} {what}".strip()
    said = match[0].rstrip(".")
    return Statement("date", key, value, said, start + match.start(), start + match.start() + len(said))


def _day(match: re.Match[str]) -> str:
    """`2026-03-13`, `03-13` without a year, else as it was said."""
    for day, month, year in (("d1", "m1", "y1"), ("d2", "m2", "y2")):
        if match[day]:
            told = f"{_month(match[month]):02d}-{int(match[day]):02d}"
            return f"{match[year]}-{told}" if match[year] else told
    if match["m3"]:
        return f"{match['y3']}-{_month(match['m3']):02d}"
    return folded(match[0].rstrip("."))


def _month(name: str) -> int:
    return _MONTHS.index(name.lower()[:3]) + 1
