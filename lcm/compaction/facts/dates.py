"""Days and times of day."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import folded, label

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


@dataclass(frozen=True, slots=True)
class Dates:
    """A day or a time is about the two content words nearest before it in its sentence, else behind it."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for place in read.places:
            sentence = read.words(place)
            for match in _DAY.finditer(sentence):
                yield _statement(match, sentence, place[0], "day", _day(match))
            for match in _CLOCK.finditer(sentence):
                yield _statement(match, sentence, place[0], "clock", match[0].lower().replace(" ", "").replace(".", ""))


def _statement(match: re.Match[str], sentence: str, start: int, what: str, value: str) -> Statement:
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
