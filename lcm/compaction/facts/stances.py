"""What was settled, laid down, preferred or asked."""

import re
from collections.abc import Iterator
from functools import lru_cache

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.compaction.facts.wording import content_words, folded, gist, is_negative
from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import Modality

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
    for start, end in read.sentences:
        said = read.text[start:end]
        if _DECIDES.search(said.replace("’", "'")) and not _OPEN.search(said) and (about := gist(said)):
            yield Statement("decision", about, "no" if is_negative(said) else "yes", said, start, end)


_FRAME = ClauseRules()


def rules(read: ReadText) -> Iterator[Statement]:
    """Sentences in which guidance reads a rule, of whoever can lay one down."""
    if not read.states_rules:
        return
    for start, end in read.sentences:
        said = read.text[start:end]
        modality = _modality(said)
        if modality is not None and (about := gist(said)):
            yield Statement("rule", about, f"{modality}{' not' if is_negative(said) else ''}", said, start, end)


@lru_cache(maxsize=100_000)
def _modality(sentence: str) -> Modality | None:
    return _FRAME.read(sentence).label


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


_ASKS = re.compile(r"[?？][\"')\]*_`\s]*\Z")
_LEAST_WORDS = 1
_MOST_CHARACTERS = 500


def questions(read: ReadText) -> Iterator[Statement]:
    """Sentences with a content word that end in a question mark.

    Whether one is still open is for `lcm.compaction.facts.ledger` to say.
    """
    for start, end in read.sentences:
        said = read.text[start:end]
        if len(said) <= _MOST_CHARACTERS and _ASKS.search(said) and len(set(content_words(said))) >= _LEAST_WORDS:
            yield Statement("question", gist(said), "", said, start, end)
