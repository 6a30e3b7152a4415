"""Alignment: which messages a text of an external memory stands for.

A memory that names the messages is believed where the text holds their words, or retells them. Else the text is looked
for among the messages that it was given, without regard to case, white space and kinds of quotation marks: a message in
the text, or the text in a message; then messages that a stretch of the text nearly repeats.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from rapidfuzz import fuzz

from eval.questions.quotation import folded

How = Literal["named", "exact", "near", "none", "foreign", "early"]
"""How a text came to stand for messages: the memory named them, their words stand there, or nearly; or why it stands
for none: nothing is like it, it was said in another workspace, or it was not added yet."""
_SPEAKER = re.compile(r"^\W*[^\W\d_][\w .'-]{0,40}: ")
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[^\W{_UNSPACED}]+|[{_UNSPACED}]")
"""Of scripts without spaces each letter is a word."""
_SHORTEST = 16
"""Letters of a message that is recognised within a longer text, where it is no line of its own."""
_SHORTEST_NEAR = 24
_CLOSEST = 8
"""Messages that a stretch is held against, those that share the rarest words with it."""


class Aligned(NamedTuple):
    """What became of a text."""

    message_ids: tuple[str, ...]
    how: How
    is_edited: bool = False
    """Named messages stand there, though not as they were said."""
    is_retold: bool = False
    """It holds no words of the messages that it names."""
    unknown_ids: int = 0
    """Ids that name nothing which was added."""
    is_overstated: bool = False
    """It names more messages than it has words for: those that do not stand in it are not believed."""
    is_misnamed: bool = False
    """It is another message than those that it names: they are not believed."""


@dataclass(frozen=True, slots=True)
class _Said:
    place: int
    message_id: str
    words: str
    """Folded."""


class Aligner:
    """Aligns texts to the messages of one workspace, as far as they were added."""

    def __init__(
        self, said: Sequence[tuple[str, str, str | None]], foreign: Collection[str], similarity: float
    ) -> None:
        """
        Args:
            said: id, words and author of every message, in the order of adding.
            foreign: what was said in other workspaces.
            similarity: in [0, 1], from which a stretch nearly repeats a message.
        """
        self._similarity = 100 * similarity
        self._foreign = foreign
        self._all = [_Said(place, name, folded(words)) for place, (name, words, _) in enumerate(said)]
        self._place = {one.message_id: one.place for one in self._all}
        self._whole: dict[str, list[_Said]] = defaultdict(list)
        self._holding: dict[str, list[_Said]] = defaultdict(list)
        """Word -> the messages that hold it."""
        for one, (_, _, author) in zip(self._all, said, strict=True):
            for form in {one.words, folded(f"{author}: {one.words}")} if author else {one.words}:
                self._whole[form].append(one)
            for word in set(_WORD.findall(one.words)):
                self._holding[word].append(one)
        self._by_rarest: dict[str, list[_Said]] = defaultdict(list)
        for one in self._all:
            if words := _WORD.findall(one.words):
                self._by_rarest[min(words, key=lambda word: len(self._holding[word]))].append(one)
        self._kept: dict[tuple[str, tuple[str, ...] | None, int], Aligned] = {}

    def align(self, text: str, named: Sequence[str] | None, added: int) -> Aligned:
        """
        Args:
            text: as the memory returned it.
            named: ids of messages that it says the text is of; None: it does not say.
            added: how many of the messages it had been given by then.
        """
        key = (text, None if named is None else tuple(named), added)
        if key not in self._kept:
            self._kept[key] = self._aligned(*key)
        return self._kept[key]

    def _aligned(self, text: str, named: Sequence[str] | None, added: int) -> Aligned:
        known = [name for name in dict.fromkeys(named or ()) if self._place.get(name, added) < added]
        unknown = len(set(named or ())) - len(known)
        words = folded(text)
        standing, near = self._standing(words, known)
        if not standing:
            found, how = self._by_content(text, words, added)
            is_another = how in ("foreign", "early") or (how == "exact" and len(words) >= _SHORTEST_NEAR)
            if not known or is_another:
                is_misnamed = bool(known) and how == "exact"
                return Aligned(_names(found), how, unknown_ids=unknown, is_misnamed=is_misnamed)
        retold = [name for name in known if name not in standing]
        rest = words
        for name in standing:
            rest = rest.replace(self._all[self._place[name]].words, " ")
        is_overstated = len(retold) > max(1, len(set(_WORD.findall(rest))))
        if is_overstated and not standing:
            return Aligned(_names(found), how, unknown_ids=unknown, is_overstated=True)
        believed = tuple(name for name in known if name in standing or not is_overstated)
        return Aligned(
            believed, "named", is_edited=bool(near), is_retold=bool(retold) and not is_overstated,
            unknown_ids=unknown, is_overstated=is_overstated,
        )  # fmt: skip

    def _standing(self, words: str, known: Sequence[str]) -> tuple[set[str], set[str]]:
        """Which of some messages stand in a text; and which of these nearly."""
        said = {name: self._all[self._place[name]].words for name in known}
        exact = {name for name, theirs in said.items() if theirs and _holds(words, theirs)}
        near = {name for name in said.keys() - exact if self._is_near(words, self._all[self._place[name]])}
        return exact | near, near

    def _by_content(self, text: str, words: str, added: int) -> tuple[Collection[_Said], How]:
        exact = set(self._exact(text, words))
        if standing := {one for one in exact if one.place < added}:
            return standing, "exact"
        if exact:
            return (), "early"
        if any(line in self._foreign for line in (text.strip(), *_unspoken(text.strip()))):
            return (), "foreign"
        near = {one for stretch in _stretches(text, words) for one in self._near(stretch)}
        if standing := {one for one in near if one.place < added}:
            return standing, "near"
        return (), "early" if near else "none"

    def _exact(self, text: str, words: str) -> Iterator[_Said]:
        """Messages that the text is, has as a line, or holds; and those that hold it."""
        for line in {words, *map(folded, text.splitlines())}:
            for form in (line, *_unspoken(line)):
                yield from self._whole.get(form, ()) if form else ()
        of_text = set(_WORD.findall(words))
        for word in of_text:
            for one in self._by_rarest.get(word, ()):
                if len(one.words) >= _SHORTEST and one.words in words:
                    yield one
        inner = _WORD.findall(words)[1:-1]
        if len(words) >= _SHORTEST and inner:
            for one in min((self._holding.get(word, []) for word in inner), key=len):
                if words in one.words:
                    yield one

    def _near(self, stretch: str) -> Iterator[_Said]:
        """Messages that a stretch nearly repeats, of those that share the rarest words with it."""
        if len(stretch) < _SHORTEST_NEAR:
            return
        weights: dict[int, float] = defaultdict(float)
        most = max(50, len(self._all) // 20)
        for word in set(_WORD.findall(stretch)):
            holding = self._holding.get(word, ())
            if len(holding) <= most:  # what stands everywhere tells none apart
                for one in holding:
                    weights[one.place] += 1 / len(holding)
        for place in sorted(weights, key=lambda place: (-weights[place], place))[:_CLOSEST]:
            if self._is_near(stretch, self._all[place]):
                yield self._all[place]

    def _is_near(self, stretch: str, one: _Said) -> bool:
        is_long = min(len(stretch), len(one.words)) >= _SHORTEST_NEAR
        return is_long and fuzz.partial_ratio(stretch, one.words, score_cutoff=self._similarity) > 0


def _names(found: Iterable[_Said]) -> tuple[str, ...]:
    return tuple(one.message_id for one in sorted(found, key=lambda one: one.place))


def foreign_texts(texts: Iterable[str], said_elsewhere: Iterable[str]) -> set[str]:
    """Those of some texts, or of what they say behind a speaker's name, that were said in other workspaces.

    What is too short to tell where it was said is left out.
    """
    wanted = {
        form for text in texts for form in (text.strip(), *_unspoken(text.strip())) if len(form) >= _SHORTEST_NEAR
    }
    return {words for words in said_elsewhere if words in wanted}


def _holds(text: str, words: str) -> bool:
    return words in text or (len(text) >= _SHORTEST and text in words)


def _unspoken(line: str) -> Iterator[str]:
    """A line without the speaker that it begins with."""
    if spoken := _SPEAKER.match(line):
        yield line[spoken.end() :].strip()


def _stretches(text: str, words: str) -> Iterator[str]:
    """The whole text; then its lines, without speakers."""
    yield words
    lines = [folded(line) for line in text.splitlines()]
    for line in lines:
        for form in (line, *_unspoken(line)):
            if form != words:
                yield form


def shares(counts: Mapping[How, int]) -> float:
    """The share of texts that stand for messages, of those of which it can be told."""
    told = sum(counts.values())
    return (told - counts.get("none", 0)) / told if told else 1.0
