"""People, places, products and whatever else has a name of its own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement
from lcm.retrieval.text_index.words import load_stop_words

_WORD = r"[A-ZÀ-ÖØ-Þ][\w'’&-]*\w"
_WITHIN = re.compile(rf"(?<=[a-zà-ÿ0-9,;)&–-] ){_WORD}(?: (?:(?:of|de|van|von|der|the|la) )?{_WORD})*")
_FIRST = re.compile(
    rf"[\s>*#-]*(?P<name>{_WORD}(?: {_WORD})+|{_WORD}(?=(?:['’]s|,? (?:is|has|was|had|said|says|thinks?|knows?|"
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


@dataclass(frozen=True, slots=True)
class Names:
    """Runs of capitalised words within a sentence; at its beginning two of them, or one that does something.

    English: of a language that capitalises nouns it finds these too, and of one without capitals nothing.
    """

    def find(self, read: ReadText) -> Iterator[Statement]:
        for place in read.sentences:
            sentence = read.words(place)
            if _is_heading(sentence):
                continue
            if first := _FIRST.match(sentence):
                yield from _statement(first["name"], place[0] + first.start("name"))
            for match in _WITHIN.finditer(sentence):
                yield from _statement(match[0], place[0] + match.start())


def _statement(said: str, start: int) -> Iterator[Statement]:
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
        yield Statement("name", said.casefold(), "", said, start, start + len(said))


def _can_name(word: str) -> bool:
    bare = re.split("['’]", word.strip("'’&-."))[0]
    return len(bare) > 1 and not (
        bare in load_stop_words("english") or bare.removesuffix("s") in _DAYS or bare in _NO_NAMES
    )


def _is_heading(sentence: str) -> bool:
    """Whether most words are capitalised: a title, or shouted."""
    words = [word for word in sentence.split() if word[:1].isalpha()]
    capitals = sum(word[0].isupper() for word in words)
    return len(words) > 4 and capitals > 0.8 * len(words)
