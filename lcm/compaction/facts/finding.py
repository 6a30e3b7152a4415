"""Every finder of facts, and all of them over one text, once."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType

from lcm.compaction.facts.done import changes, commands, errors, paths
from lcm.compaction.facts.reading import (
    Finder,
    Kind,
    ReadMessage,
    ReadText,
    Statement,
    content_words,
    folded,
    gist,
    is_negative,
    label,
    read_text,
)
from lcm.compaction.guidance.clauses import modalities
from lcm.text import load_stop_words

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
_SIGNS = {"€": "eur", "$": "usd", "£": "gbp", "¥": "jpy"}
_SHORT_UNITS = {
    "sec": "s", "second": "s", "minute": "min", "hour": "h", "hr": "h", "euro": "eur", "dollar": "usd", "per cent": "%",
    "percent": "%", "millisecond": "ms", "metre": "m", "meter": "m", "gram": "g", "liter": "l", "litre": "l",
    "person": "people",
}  # fmt: skip
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
    for begin, sentence in read.spoken():
        taken: list[tuple[int, int]] = []
        for match in _WITH_UNIT.finditer(sentence):
            taken.append(match.span())
            about = label(sentence[: match.start()], sentence[match.end() :])
            value, dimension = _measured(match)
            yield Statement.at("number", f"{about} {dimension}".strip(), value, match[0], begin + match.start())
        for match in _LABELLED.finditer(sentence):
            start, end = match.span("number")
            is_year = len(match["number"]) == 4 and match["number"][:2] in ("19", "20")
            is_taken = any(first < end and start < last for first, last in taken)
            if not is_taken and not is_year and content_words(match["label"]):
                key = f"{label(sentence[: match.end('label')], '')} number"
                said = sentence[match.start() : end]
                yield Statement.at("number", key, _plain(match["number"]), said, begin + match.start())


def _measured(match: re.Match[str]) -> tuple[str, str]:
    """A number with its unit in one spelling (`seconds`, `secs` and `s` are `s`), and its dimension."""
    if match["sign"]:
        number = match["sum"] + (match["scale"] or "").strip().lower()
        return f"{_plain(number)} {_SIGNS[match['sign']]}", "money"
    unit = match["unit"]
    dimension = next(name for name, units in _DIMENSION.items() if units.fullmatch(unit))
    unit = _SIGNS.get(unit, unit.casefold() if len(unit) > 1 else unit)
    bare = unit.removesuffix("s") if dimension != "size" and len(unit) > 2 else unit
    return f"{_plain(match['number'])} {_SHORT_UNITS.get(bare, bare)}", dimension


def _plain(number: str) -> str:
    return str(_WORDS.index(word) + 1) if (word := number.lower()) in _WORDS else re.sub(r"[,  +]", "", number)


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
    for start, sentence in read.spoken(with_calls=True):
        found = [(match, "day", _day(match)) for match in _DAY.finditer(sentence)]
        found += [(match, "clock", re.sub(r"[ .]", "", match[0].lower())) for match in _CLOCK.finditer(sentence)]
        for match, what, value in found:
            before, behind = sentence[: match.start()], sentence[match.end() :]
            about = label(*(_CLOCK.sub(" ", _DAY.sub(" ", words)) for words in (before, behind)))
            yield Statement.at("date", f"{about} {what}".strip(), value, match[0].rstrip("."), start + match.start())


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


_URL = re.compile(
    r"\b(?:https?|ftp|ssh|git|file|postgres(?:ql)?|redis|mongodb)://[^\s<>\"'`\\|{}^\])]{3,500}", re.IGNORECASE
)


def urls(read: ReadText) -> Iterator[Statement]:
    """A scheme, `://`, and what follows up to white space; marks that end a sentence are not part of it."""
    for match in _URL.finditer(read.text):
        said = match[0].rstrip(".,;:!?*_)")
        if read.tells(match.start()):
            yield Statement.at("url", said.rstrip("/"), "", said, match.start())


_OPAQUE = (
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # a UUID
    r"|(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,64}"  # a hash
    r"|[A-Z][A-Z0-9]{0,9}-\d{1,8}(?:-\d{1,8})*|[A-Z]{2,3}\d{2,6}"  # a ticket, a train
    r"|(?=[A-Za-z0-9]*\d)[a-z]{2,10}_[A-Za-z0-9]{5,40}"  # an id with its type before it
    r"|v\d+(?:\.\d+){1,3}(?:-[\w.]+)?|\d+\.\d+\.\d+(?:[-+][\w.]+)?"  # a version
    r"|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])(?!\d+[A-Z]{1,3}\b)[A-Z0-9]{5,12}"  # a reference
)
_IDENTIFIER = re.compile(rf"(?<![\w./#@:-])(?:{_OPAQUE}|\#\d{{1,7}})(?![\w/@-]|\.\w)")
_CODE_NAME = re.compile(r"`([A-Za-z_]\w*(?:[._]\w+)+|[a-z]+(?:[A-Z]\w*)+|[A-Z]\w*[a-z]\w*[A-Z]\w*)(?:\(\))?`")
_SAYS = re.compile(r"(?:\bis(?: now)?|\bwas|[=:])\s*[`'\"*]*$", re.IGNORECASE)
_FILE_END = re.compile(r"\.[a-z]{1,5}$")


def identifiers(read: ReadText) -> Iterator[Statement]:
    """Words that no dictionary has: each is about itself, unless "is", "=" or ":" binds it to a label before it."""
    for start, sentence in read.spoken(with_calls=True):
        for match in _IDENTIFIER.finditer(sentence):
            before, said = sentence[: match.start()], match[0]
            about = label(before, "") if _SAYS.search(before) else ""
            yield Statement.at("identifier", about or said, said if about else "", said, start + match.start())
        for match in _CODE_NAME.finditer(sentence):
            if not _FILE_END.search(match[1]):
                yield Statement.at("identifier", match[1], "", match[1], start + match.start(1))


_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*\w"
_NAME_WITHIN = re.compile(rf"(?<=[a-zà-ÿ0-9,;)&–-] ){_CAPITAL}(?: (?:(?:of|de|van|von|der|the|la) )?{_CAPITAL})*")
_FIRST = re.compile(
    rf"[\s>*#-]*(?P<name>{_CAPITAL}(?: {_CAPITAL})+|"
    rf"{_CAPITAL}(?=(?:['’]s|,? (?:is|has|was|had|said|says|thinks?|knows?|"
    r"found|made|took|ate|hates?|booked|paid|will|wants?|wanted|and|"
    r"called|wrote|asked|told|lives?|works?|needs?|moved|comes?|came|gave|loves?|likes?|does|did|can)) ))"
)
_DAYS = frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep sept oct nov
    dec""".split()  # noqa: SIM905
)
_NO_NAMES = frozenset(
    """eur usd gbp sek nok dkk chf jpy kb mb gb tb ms hr utc name names since after during until nothing everything
    something anything someone everyone nobody somebody people thing things one ones today tomorrow yesterday yes no
    ok okay hi hello hey thanks thank please sure great good nice sorry note todo fixme user assistant system tool
    done step first second third next finally also however maybe perhaps let code api url json html http https sql
    css id pr readme there here what which who how why when where that this these those it its result output error
    warning total mine rest none all both either neither if and but or so well oh wow true false add use run fix
    check make see read write file files new only every each before then now still just don ask tell call email mail
    remind book show give put say old our my dear with from for at in on to by as the a an is are was has
    have""".split()  # noqa: SIM905
)
_LONGEST_ACRONYM = 5
_LONGEST_NAME, _SHOUTED = 4, 0.8  # words, and the share of capitals, from which on a sentence is a title


def names(read: ReadText) -> Iterator[Statement]:
    """Runs of capitalised words within a sentence; at its beginning two of them, or one that does something.

    English: of a language that capitalises nouns it finds these too, and of one without capitals nothing.
    """
    for start, sentence in read.spoken():
        capitals = [word[0].isupper() for word in sentence.split() if word[:1].isalpha()]
        if len(capitals) > _LONGEST_NAME and sum(capitals) > _SHOUTED * len(capitals):
            continue
        if first := _FIRST.match(sentence):
            yield from _name(first["name"], start + first.start("name"))
        for match in _NAME_WITHIN.finditer(sentence):
            yield from _name(match[0], start + match.start())


def _name(said: str, start: int) -> Iterator[Statement]:
    """What is left of a run of words without those that begin a sentence or name a day."""
    said = re.sub(r"['’]s$", "", said)
    words = said.casefold().split()
    while words and not _can_name(words[0]):
        dropped = said.split(" ", 1)[0]
        said = said[len(dropped) :].lstrip()
        start += len(dropped) + 1
        words = words[1:]
    while words and words[-1].strip("'’&-.").removesuffix("s") in _DAYS:
        said = said.rpartition(" ")[0]
        words = words[:-1]
    is_shouted = said.isupper() and len(said) > _LONGEST_ACRONYM
    if words and len(said) > 1 and not is_shouted:
        yield Statement.at("name", said.casefold(), "", said, start)


def _can_name(word: str) -> bool:
    bare = re.split("['’]", word.strip("'’&-."))[0]
    is_common = bare in load_stop_words("english") or bare in _NO_NAMES or bare.removesuffix("s") in _DAYS
    return len(bare) > 1 and not is_common


_DECIDES = re.compile(
    r"\b(?:decided (?:to|on|that|against|not to)|decision(?: is|:| was)|have chosen|we chose|i chose|settled on|"
    r"opted (?:for|to)|agreed(?: on| to| that|:)|(?:let's|let us|we'll|we will|i'll|i will|i'm going to|we're going to|"
    r"we are going to|i am going to) (?:go with|go for|stick (?:with|to)|keep|use|switch to|do|take|skip|drop|"
    r"adopt)|"
    r"going with|sticking with|go ahead with|we're keeping|we keep|signed off on|the plan is(?: now)? to|final answer|"
    r"(?:instead of|rather than) \w+[^.?!]*\bwe\b|made up (?:my|our) mind|(?:is|are) (?:in|out) of scope)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\?\s*$|^\W*(?:should|shall|could|would|if|whether|maybe|perhaps|what if|have (?:you|we))\b|"
    r"\b(?:haven't|not yet|need to) decide",
    re.IGNORECASE,
)


def decisions(read: ReadText) -> Iterator[Statement]:
    """Sentences with the words of a decision ("decided to", "let's go with", "we'll keep") that ask nothing."""
    for start, said in read.spoken():
        if _DECIDES.search(said.replace("’", "'")) and not _OPEN.search(said) and (about := gist(said)):
            yield Statement.at("decision", about, "no" if is_negative(said) else "yes", said, start)


def rules(read: ReadText) -> Iterator[Statement]:
    """Sentences in which guidance reads a rule, of whoever can lay one down."""
    for start, said in read.spoken() if read.states_rules else ():
        if (found := modalities(said)) and (about := gist(said)):
            yield Statement.at("rule", about, f"{found[0]}{' not' if is_negative(said) else ''}", said, start)


_LIKES = (
    r"prefer|love|adore|enjoy|like|am into|'m into|am a (?:big |huge )?fan of|'m a (?:big |huge )?fan of|'d rather|"
    r"would rather|would prefer|'d prefer|am fond of"
)
_DISLIKES = (
    r"hate|dislike|can't stand|cannot stand|can't eat|cannot eat|can't have|am allergic to|'m allergic to|avoid|detest"
)
_STANCE = re.compile(
    rf"\bI(?: (?:really|do|just|also|always|usually|mostly|absolutely|generally|still|much|"
    r"don't|do not|never|didn't|can't))*"
    rf"(?: |(?='))(?P<stance>{_LIKES}|{_DISLIKES})\b(?! to (?:know|see if|ask)\b)(?P<object>[^.;!?\n]*)",
    re.IGNORECASE,
)
_FAVOURITE = re.compile(
    r"\bmy (?:(?:all-time|absolute|personal) )?favou?rite (?P<of>[\w -]{2,40}?) (?:is|are|was|would be|"
    r"has (?:always )?been) (?P<value>[^.,;!?\n]+)",
    re.IGNORECASE,
)
_DIET = re.compile(
    r"\bI(?:'m| am) (?:a |strictly )?(?P<value>vegetarian|vegan|pescatarian|gluten-free|lactose intolerant|coeliac|"
    r"celiac|diabetic|left-handed|teetotal)\b",
    re.IGNORECASE,
)
_WISH = re.compile(r"\b(?:would|'d) (?:like|love)(?: to|\b)", re.IGNORECASE)


def preferences(read: ReadText) -> Iterator[Statement]:
    """What a speaker says of "I" and "my"; wishes ("I'd like to") are none."""
    for start, words in read.spoken() if read.states_rules else ():
        said = words.replace("’", "'")
        found: list[tuple[re.Match[str], str, str]] = []
        if not said.rstrip().endswith("?"):
            found += [
                (one, f"favourite {folded(one['of'])}", folded(one["value"])) for one in _FAVOURITE.finditer(said)
            ]
            found += [(one, folded(one["value"]), "yes") for one in _DIET.finditer(said)]
            found += [(one, gist(one["object"]), _stance(one)) for one in _STANCE.finditer(said)]
        for match, key, value in found:
            if key and value:
                yield Statement.at("preference", key, value, words[match.start() : match.end()], start + match.start())


def _stance(match: re.Match[str]) -> str:
    """`likes`, `dislikes`, or empty where it is a wish."""
    if _WISH.search(match[0]):
        return ""
    is_liked = re.fullmatch(_LIKES, match["stance"], re.IGNORECASE) is not None
    return "likes" if is_liked != is_negative(match[0][: match.start("stance") - match.start()]) else "dislikes"


_ASKS = re.compile(r"[?？][\"')\]*_`\s]*\Z")
_LONGEST_QUESTION = 500


def questions(read: ReadText) -> Iterator[Statement]:
    """Sentences with a content word that end in a question mark.

    Whether one is still open is for `lcm.compaction.facts.ledger` to say.
    """
    for start, said in read.spoken():
        if len(said) <= _LONGEST_QUESTION and _ASKS.search(said) and (about := gist(said)):
            yield Statement.at("question", about, "", said, start)


FINDERS: Mapping[Kind, Finder] = MappingProxyType(
    {
        "path": paths,
        "change": changes,
        "command": commands,
        "error": errors,
        "identifier": identifiers,
        "url": urls,
        "number": numbers,
        "date": dates,
        "name": names,
        "decision": decisions,
        "rule": rules,
        "preference": preferences,
        "question": questions,
    }
)
_OF_RESULTS: tuple[Kind, ...] = ("error",)
"""What tools brought is no fact of the conversation until somebody says it, but that something went wrong."""
_SEEN_IN_RESULTS: tuple[Kind, ...] = ("path", "url")
_WITHIN: Mapping[Kind, tuple[Kind, ...]] = MappingProxyType(
    {
        "path": ("url",),
        "identifier": ("url", "path", "command", "date"),
        "number": ("url", "path", "command", "date"),
        "date": ("url", "path", "command"),
        "name": ("url", "path", "command", "identifier"),
    }
)
"""A kind -> kinds whose words hold none of it: a number within an address is no number."""


def statements_of(read: ReadMessage) -> list[Statement]:
    """What a message states: places are those in what was said, of errors of tools in what they brought."""
    return [*_found(read.said, tuple(FINDERS)), *_found(read.brought, _OF_RESULTS)]


def seen_in_results(read: ReadMessage) -> list[Statement]:
    """What stands in the results of a message for whoever is shown it, though nobody said it."""
    return list(_found(read.brought, _SEEN_IN_RESULTS))


@lru_cache(maxsize=20_000)
def statements_in(text: str) -> tuple[Statement, ...]:
    """What a text states of which no more is known than its words, as a summary."""
    return tuple(_found(read_text(text), tuple(FINDERS)))


class Spans:
    """Stretches of a text, of which is asked whether one of them holds another: a long message has thousands."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(spans)
        self._starts = [start for start, _ in ordered]
        self._ends = list(accumulate((end for _, end in ordered), max))
        """Of each the end that lies farthest on, of it and those that begin before it."""

    def hold(self, start: int, end: int) -> bool:
        """Whether one of them begins no later and ends no earlier."""
        place = bisect_right(self._starts, start)
        return place > 0 and self._ends[place - 1] >= end


def _found(read: ReadText, kinds: tuple[Kind, ...]) -> Iterator[Statement]:
    """Each statement once, where it stands last; what stands within other kinds' words, by `_WITHIN`, is left out."""
    found = {kind: list(FINDERS[kind](read)) for kind in kinds if read.text.strip()}
    for kind, statements in found.items():
        spans = Spans((one.start, one.end) for outer in _WITHIN.get(kind, ()) for one in found.get(outer, ()))
        last: dict[tuple[str, str], Statement] = {}
        for one in statements:
            if not spans.hold(one.start, one.end):
                last.pop((one.key, one.value), None)
                last[one.key, one.value] = one
        yield from last.values()
