"""Where quotations stand: word for word in the texts of a message, else in words that are nearly the same."""

import bisect
import hashlib
import itertools
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from lcm.records.conversation import Message, Part, Transcript
from lcm.retrieval.ranking.evidence.text_facts import content_words

_DEEPEST = 4
"""How often JSON may stand as text within JSON."""

_PLAIN = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})


def searched_texts(message: Message) -> list[str]:
    """Its words, and its tools with their arguments and results: as JSON text, and the strings within.

    What a model thought is not among them: it said that to nobody.
    """
    texts = {message.content: None}
    for part in message.parts:
        if part.part_type != "reasoning" and part.text:
            texts[part.text] = None
        for value in (part.tool_input, part.tool_output):
            if value:
                texts[f"{part.tool_name} {value}" if part.tool_name else value] = None
                texts |= dict.fromkeys(_strings(value, 0))
    return [text for text in texts if text]


def folded(text: str) -> str:
    """The text as it is compared where it need not be the same to the letter: case, white space, kinds of quotes."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_PLAIN).split()).casefold()


def _strings(text: str, depth: int) -> Iterator[str]:
    """The strings in JSON text, and in strings that are JSON text themselves."""
    if depth < _DEEPEST and text.lstrip()[:1] in ("{", "[", '"'):
        try:
            value = json.loads(text)
        except (RecursionError, ValueError):
            return
        waiting = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, str):
                yield one
                yield from _strings(one, depth + 1)
            elif isinstance(one, list):
                waiting += one
            elif isinstance(one, dict):
                waiting += one.values()


_AT_ONCE = 2_000
"""Messages whose texts are searched as one: a search of each by itself takes ten times as long."""
_BETWEEN = "\x00"
"""Between texts; no quotation holds it."""
SHORTEST_LIKENESS = 12
"""A shorter quotation is found word for word or not at all."""
NEAREST = 3
"""How many messages are told that are like a quotation."""
_LEAST_LIKE = 60.0
"""In per cent: a message less like is not told."""
_AROUND = 16
"""How many characters beside a likeness may belong to it, as words are longer or shorter there."""
_TOKEN = re.compile(r"\d+|[^\W\d]+(?:'[^\W\d]+)*")
_NEGATION = re.compile(
    r"not?|never|none|nothing|nobody|nowhere|neither|nor|without|cannot|\w+n't|nicht|kein\w*|nie|ohne"
)


class Place(NamedTuple):
    """A message, and what it is a part of."""

    transcript: Transcript
    message: Message

    @property
    def message_id(self) -> str:
        return self.message.message_id

    def content_digest(self) -> bytes:
        """Equal for byte-equal copies of a message."""
        told = hashlib.blake2b(self.message.role.encode(), digest_size=16)
        for text in searched_texts(self.message):
            told.update(f"\x00{text}".encode("utf-8", "surrogatepass"))
        return told.digest()


class Likeness(NamedTuple):
    """A message that is like a quotation."""

    place: Place
    percent: float
    """Of the quotation's characters, as rapidfuzz's `partial_ratio`."""
    keeps_its_sense: bool
    """Whether it also has every number of the quotation in its place, and the same negations."""


def holding(quotes: Collection[str], transcripts: Iterable[Transcript]) -> dict[str, list[Place]]:
    """The messages that hold each quotation word for word, in order."""
    found: dict[str, list[Place]] = {quote: [] for quote in quotes}
    places = places_of(transcripts) if quotes else iter(())
    while some := list(itertools.islice(places, _AT_ONCE)):
        texts = [(place, text) for place in some for text in searched_texts(place.message)]
        joined = _BETWEEN.join(text for _, text in texts)
        starts = list(itertools.accumulate((len(text) + len(_BETWEEN) for _, text in texts), initial=0))
        for quote, of_quote in found.items():
            at = joined.find(quote)
            while at >= 0:
                number = bisect.bisect_right(starts, at) - 1
                place, text = texts[number]
                if place is not (of_quote[-1] if of_quote else None) and end_of(quote, text) is not None:
                    of_quote.append(place)
                at = joined.find(quote, starts[number + 1])
    return found


def thinking(quote: str, transcripts: Iterable[Transcript]) -> list[Place]:
    """The messages in which a model thought the words of a quotation, which is no evidence."""

    def is_thought(part: Part) -> bool:
        return part.part_type == "reasoning" and end_of(quote, part.text or "") is not None

    return [place for place in places_of(transcripts) if any(map(is_thought, place.message.parts))]


def end_of(quote: str, text: str) -> int | None:
    """Where a quotation that stands in a text ends; None = it does not stand there.

    A number at an end of a quotation is whole where it stands, and a single word too: nobody quotes 3 from 30, or cat
    from concatenate.
    """
    at = text.find(quote)
    if at < 0:
        return None  # as in most texts
    is_word = quote.isascii() and len(quote.split()) == 1
    goes_on = (lambda one: one.isascii() and one.isalnum()) if is_word else str.isdecimal
    while at >= 0:
        end = at + len(quote)
        is_cut = goes_on(quote[:1]) and goes_on(text[at - 1 : at])
        if not is_cut and not (goes_on(quote[-1:]) and goes_on(text[end : end + 1])):
            return end
        at = text.find(quote, at + 1)
    return None


def alike(quotes: Mapping[str, Collection[str] | None], transcripts: Iterable[Transcript]) -> dict[str, list[Likeness]]:
    """The messages that are like each quotation, the likest first; each may stand in some conversations, None = any."""
    found: dict[str, list[Likeness]] = {quote: [] for quote in quotes}
    sought = [(quote, folded(quote), conversations) for quote, conversations in quotes.items()]
    for place in places_of(transcripts) if quotes else ():
        texts = [folded(text) for text in searched_texts(place.message)]
        for quote, words, conversations in sought:
            if conversations is None or place.transcript.conversation_id in conversations:
                likest = _likest(words, texts, place)
                if likest.percent:
                    found[quote].append(likest)
    return {quote: sorted(likenesses, key=lambda one: -one.percent) for quote, likenesses in found.items()}


def likeness(quote: str, place: Place) -> Likeness:
    """How like a message is to a quotation."""
    return _likest(folded(quote), [folded(text) for text in searched_texts(place.message)], place)


def words_quoted(quote: str, place: Place) -> str:
    """The words of a message that a quotation is of: its own, or, where it is only like some, these."""
    texts, words = [folded(text) for text in searched_texts(place.message)], folded(quote)
    if any(words in text for text in texts):
        return quote
    likest = max(texts, key=lambda text: _likeness(words, text)[0], default="")
    found = fuzz.partial_ratio_alignment(words, likest)
    return quote if found is None else likest[found.dest_start : found.dest_end] or quote


def may_be_alike(quote: str) -> bool:
    """Whether a quotation says enough to be known by its likeness; a single ASCII word is taken at its letters."""
    words = folded(quote)
    return len(words) >= SHORTEST_LIKENESS and (" " in words or not words.isascii())


def _likest(words: str, texts: Iterable[str], place: Place) -> Likeness:
    percent, keeps_its_sense = max((_likeness(words, text) for text in texts), default=(0.0, False))
    return Likeness(place, percent, keeps_its_sense)


def _likeness(words: str, text: str) -> tuple[float, bool]:
    if len(text) < len(words) * 2 / 3:  # else the quotation would be held against a part of itself
        return 0.0, False
    found = fuzz.partial_ratio_alignment(words, text, score_cutoff=_LEAST_LIKE)
    if found is None:
        return 0.0, False
    start = text.rfind(" ", 0, max(0, found.dest_start - _AROUND)) + 1
    end = text.find(" ", found.dest_end + _AROUND)
    around = text[start : None if end < 0 else end]
    return found.score, _keeps_its_sense(_TOKEN.findall(words), _TOKEN.findall(around))


def _keeps_its_sense(quoted: list[str], around: list[str]) -> bool:
    """Whether, word held against word, no number is another one and no negation came or went."""
    changes = list(LCSseq.opcodes(quoted, around))
    equal = [number for number, one in enumerate(changes) if one.tag == "equal"]
    if not equal:
        return not any(map(_is_telling, quoted))
    lost = (word for one in changes if one.tag != "equal" for word in quoted[one.src_start : one.src_end])
    within = (one for one in changes[equal[0] : equal[-1]] if one.tag != "equal")
    added = (word for one in within for word in around[one.dest_start : one.dest_end])
    return not any(map(_is_telling, lost)) and not any(map(_NEGATION.fullmatch, added))


def _is_telling(word: str) -> bool:
    return word.isdecimal() or _NEGATION.fullmatch(word) is not None


def places_of(transcripts: Iterable[Transcript]) -> Iterator[Place]:
    """Every message, in order."""
    for transcript in transcripts:
        for message in transcript.messages:
            yield Place(transcript, message)


OF_OVERLAP = "of their content words with their evidence"
"""What a note of the mean overlap ends with: it is true of the evidence that the questions came with, and no other."""


def overlap(question: str, evidence: Sequence[str]) -> float | None:
    """The share of a question's distinct content words that a text of its evidence holds, mean over these texts.

    In [0, 1], by words as text indexes cut them, without stop words and stemming; None where there are none, or no
    evidence.
    """
    asked = set(content_words(question))
    if not asked or not evidence:
        return None
    return sum(len(asked & set(content_words(text))) / len(asked) for text in evidence) / len(evidence)
