"""What somebody likes, dislikes, prefers, or cannot have."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import folded, gist, is_negative

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


@dataclass(frozen=True, slots=True)
class Preferences:
    """What a speaker says of "I" and "my"; wishes ("I'd like to") are none."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        if not read.states_rules:
            return
        for start, end in read.sentences:
            said = read.text[start:end].replace("’", "'")
            if said.rstrip().endswith("?"):
                continue
            for match in _FAVOURITE.finditer(said):
                key = f"favourite {folded(match['of'])}"
                yield Statement("preference", key, folded(match["value"]), *_span(read, start, match))
            for match in _DIET.finditer(said):
                yield Statement("preference", folded(match["value"]), "yes", *_span(read, start, match))
            for match in _STANCE.finditer(said):
                if (about := gist(match["object"])) and not _WISH.search(match[0]):
                    is_liked = re.fullmatch(_LIKES, match["stance"], re.IGNORECASE) is not None
                    before = match[0][: match.start("stance") - match.start()]
                    value = "likes" if is_liked != is_negative(before) else "dislikes"
                    yield Statement("preference", about, value, *_span(read, start, match))


def _span(read: ReadText, start: int, match: re.Match[str]) -> tuple[str, int, int]:
    first, last = start + match.start(), start + match.end()
    return read.text[first:last], first, last
