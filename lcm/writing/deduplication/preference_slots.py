"""What a preference for something of a brand names: "I like fries from McDonalds".

Source: memory-lancedb-pro, preference-slots.
"""

import re
from dataclasses import dataclass

from lcm.javascript import WHITE_SPACE, trim

MAX_BRAND_LENGTH, MAX_ITEMS_LENGTH = 24, 80
MAX_ENGLISH_BRAND_LENGTH, MAX_ENGLISH_ITEMS_LENGTH = 40, 80

_S = f"[{WHITE_SPACE}]"
_SEPARATORS = "。！？!?；;，,、"
_NAME = "\u4e00-\u9fffA-Za-z0-9&·'\\-"
_CHINESE = re.compile(
    rf"(?:^|[{_SEPARATORS}{WHITE_SPACE}])(?:我|用户)?(?:很|更|还)?(?:喜欢|爱吃|偏爱|常吃|想吃)(?:吃|喝|用|买)?"
    rf"([{_NAME}]{{1,{MAX_BRAND_LENGTH}}})的([{_NAME}{WHITE_SPACE}、，,/]{{1,{MAX_ITEMS_LENGTH}}})"
)
_ENGLISH = re.compile(
    rf"\b(?:(?:i|user){_S}+)?(?:(?:really|still|also){_S}+)?(?:like|love|prefer|enjoy){_S}+"
    rf"([a-z0-9'&\-{WHITE_SPACE}]{{1,{MAX_ENGLISH_ITEMS_LENGTH}}}){_S}+from{_S}+"
    rf"([a-z0-9'&\-{WHITE_SPACE}]{{1,{MAX_ENGLISH_BRAND_LENGTH}}})",
    re.ASCII | re.IGNORECASE,
)
_SPEAKER = re.compile(rf"(?:^|(?<=[\n\r\u2028\u2029]))\[(?:用户|助手)\]{_S}*")
_BLANKS = re.compile(f"{_S}+")
_LEADING_QUOTES = re.compile("^[\"'“”‘’「『《]+")
_TRAILING_MARKS = re.compile("[\"'“”‘’」』》。！？!?，,；;：:]+$")
_ARTICLES = re.compile(rf"\b(?:a|an|the){_S}+", re.ASCII | re.IGNORECASE)
_STOPPER = re.compile("因为|所以|但是|不过|if |when |because |but ", re.IGNORECASE)
_LIST_SEPARATOR = re.compile(rf"以及|[、,，/及与和]|{_S}and{_S}|{_S}&{_S}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Preference:
    """A brand and what of it is liked, as tokens."""

    brand: str
    items: tuple[str, ...]
    """At least one."""

    @property
    def is_atomic(self) -> bool:
        return len(self.items) == 1


def preference(text: str) -> Preference | None:
    """What a text likes; the Chinese pattern goes before the English one."""
    normal = _normal(text)
    for pattern, brand_group, items_group in ((_CHINESE, 1, 2), (_ENGLISH, 2, 1)):
        found = pattern.search(normal)
        if found is not None:
            brand, items = token(found[brand_group]), _items(found[items_group])
            if brand and items:
                return Preference(brand, items)
    return None


def atomic_preference(text: str) -> Preference | None:
    """The same where exactly one thing is liked."""
    found = preference(text)
    return found if found is not None and found.is_atomic else None


def token(text: str) -> str:
    """A name as it is compared: no quotes around it, no final punctuation, articles or white space, in lower case."""
    bare = _TRAILING_MARKS.sub("", _LEADING_QUOTES.sub("", _normal(text)))
    return _BLANKS.sub("", _ARTICLES.sub("", bare)).lower()


def _normal(text: str) -> str:
    return trim(_BLANKS.sub(" ", _SPEAKER.sub("", text)))


def _items(listed: str) -> tuple[str, ...]:
    clause = _STOPPER.split(listed, maxsplit=1)[0] or listed  # what begins with "when" is not cut to nothing
    return tuple(filter(None, map(token, _LIST_SEPARATOR.split(clause))))
