"""Guidance by a scanner of ASCII words, exactly as libravdb memory 1.4.4 has it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

import yaml

from lcm.compaction.guidance.reading import GuidanceMatches, Modality, RuleMatch

_WORD = re.compile(rb"[A-Za-z]+")
_SENTENCE_ENDS = b"\n.!?:;"
_CLAUSE_MARKS = b",;:"
_YOU_REACH, _EVERY_REACH, _SUBJECT_REACH, _BID_REACH, _CONDITION_REACH = 3, 5, 4, 6, 14


@dataclass(frozen=True, slots=True)
class ByteScanner:
    """Words are runs of ASCII letters, everything else separates them: "don't" is two words, "naïve" is two.

    A sentence starts behind a newline or one of `. ! ? : ;`. Rules look at single words near such a start, at modals at
    most three words behind "you", at the words behind the first comma of a condition, and at imperatives once a set-up
    phrase ("to get", "if you need", "if you hit", "the tests are") stands in the same full-stop sentence.

    It takes "No problem, thanks" for a prohibition and "Build times are long" for an obligation, and misses rules about
    third persons; `lcm.compaction.guidance.clauses` corrects that.

    Source: libravdb memory 1.4.4.
    """

    def read(self, text: str) -> GuidanceMatches:
        return GuidanceMatches(tuple(_Scan(text.encode("utf-8", "surrogatepass")).findings()))


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    verbs: frozenset[str]
    persona_verbs: frozenset[str]
    binding_modals: frozenset[str]
    narrative_verbs: frozenset[str]
    labels: frozenset[str]
    manifest_fields: frozenset[tuple[str, ...]]
    subjects: frozenset[str]
    phrase_subjects: tuple[tuple[str, ...], ...]
    metatext: tuple[tuple[str, ...], ...]


@cache
def _vocabulary() -> _Vocabulary:
    words = yaml.safe_load(resources.files("lcm.compaction.guidance").joinpath("scanner_words.yaml").read_text("utf-8"))
    return _Vocabulary(
        verbs=frozenset(words["imperative_verbs"].split()),
        persona_verbs=frozenset(words["persona_verbs"].split()),
        binding_modals=frozenset(words["binding_modals"].split()),
        narrative_verbs=frozenset(words["narrative_verbs"].split()),
        labels=frozenset(words["labels"].split()),
        manifest_fields=frozenset(tuple(pair.split()) for pair in words["manifest_fields"]),
        subjects=frozenset(words["subjects"].split()),
        phrase_subjects=tuple(tuple(phrase.split()) for phrase in words["phrase_subjects"]),
        metatext=tuple(tuple(phrase.split()) for phrase in words["metatext"]),
    )


@dataclass(slots=True)
class _Scan:
    """One text under the scanner."""

    text: bytes
    known: _Vocabulary = field(default_factory=_vocabulary)
    raw: list[str] = field(init=False)
    words: list[str] = field(init=False)
    """In lower case."""
    starts: list[int] = field(init=False)
    ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        found = list(_WORD.finditer(self.text))
        self.raw = [match.group().decode("ascii") for match in found]
        self.words = [word.lower() for word in self.raw]
        self.starts = [match.start() for match in found]
        self.ends = [match.end() for match in found]

    def findings(self) -> Iterator[RuleMatch]:
        you: int | None = None
        is_set_up = False
        for i, word in enumerate(self.words):
            is_start = self._mark_before(i, b" \t\r") in (None, *_SENTENCE_ENDS)
            if self._mark_before(i, b" \t\r") in (None, *b"\n."):
                is_set_up = False
            if word == "you":
                you = i
                if is_start and self._word(i + 1) in self.known.persona_verbs:
                    yield self._finding(i, i + 1, "obligation", "you_are")
            elif you is not None and i - you <= _YOU_REACH:
                yield from self._modal(i)
            if is_start:
                yield from self._structure(i)
                yield from self._imperative(i)
                yield from self._third_person(i)
            yield from self._set_up_imperative(i, is_set_up)
            is_set_up = is_set_up or self._sets_up(i)

    def _modal(self, i: int) -> Iterator[RuleMatch]:
        word, after = self.words[i], self._word(i + 1)
        if self._word(i + 2 if after == "to" else i + 1) in self.known.narrative_verbs:
            return
        if word in self.known.binding_modals:
            yield self._finding(i, i, "forbidden" if after == "not" else "obligation", "you_modal")
        elif word == "should":
            yield self._finding(i, i, "obligation", "you_modal")
        elif word == "may":
            yield self._finding(i, i, "forbidden" if after == "not" else "permitted", "you_modal")
        elif word in ("never", "cannot") or (word == "can" and after == "not"):
            yield self._finding(i, i, "forbidden", "you_modal")

    def _structure(self, i: int) -> Iterator[RuleMatch]:
        if self.words[i] in self.known.labels:
            for last in (i, i + 1):
                if last + 1 < len(self.words) and b":" in self._between(last):
                    yield self._finding(i, last, "obligation", "label")
                    return
        if (
            i + 2 < len(self.words)
            and tuple(self.raw[i : i + 2]) in self.known.manifest_fields
            and b":" in self._between(i + 1)
        ):
            yield self._finding(i, i + 1, "obligation", "manifest_field")
            return
        if self.raw[i] == "ON":
            last = i
            while last + 1 < len(self.raw) and self.raw[last + 1].isupper() and b"->" not in self._between(last):
                last += 1
            if 1 <= last - i <= 3 and last + 1 < len(self.raw) and b"->" in self._between(last):
                yield self._finding(i, last, "obligation", "arrow")
                return
        if self.words[i] == "every":
            for j in range(i + 1, min(i + 1 + _EVERY_REACH, len(self.words))):
                if self.words[j] in self.known.binding_modals or self.words[j] == "should":
                    yield self._finding(j, j, "obligation", "every")
                    return

    def _imperative(self, i: int) -> Iterator[RuleMatch]:
        word, after = self.words[i], self._word(i + 1)
        if word in ("always", "please", "strictly") and after in self.known.verbs:
            yield self._finding(i, i, "obligation", "adverb")
        elif word == "never" and after in self.known.verbs:
            yield self._finding(i, i, "forbidden", "never")
        elif word == "do" and after == "not" and self._word(i + 2) in self.known.verbs:
            yield self._finding(i, i + 1, "forbidden", "do_not")
        elif word == "no" and after:
            yield self._finding(i, i, "forbidden", "no")
        elif word == "bid" and (banned := self._banned(i)) is not None:
            yield self._finding(banned, banned, "forbidden", "bid")
        elif word == "don" and after == "t" and self._word(i + 2) == "forget":
            yield self._finding(i, i + 2, "obligation", "do_not_forget")
        elif self._is_default_requirement(i):
            yield self._finding(i, i + 1, "obligation", "default_requirement")
        elif word == "if":
            yield from self._consequence(i)
        elif word in self.known.verbs and not self._is_metatext(i):
            yield self._finding(i, i, "obligation", "verb")

    def _banned(self, i: int) -> int | None:
        reach = range(i + 1, min(i + 1 + _BID_REACH, len(self.words)))
        return next((j for j in reach if self.words[j] in ("prohibited", "forbidden")), None)

    def _is_default_requirement(self, i: int) -> bool:
        third = self._word(i + 2)
        return (
            self.words[i : i + 2] == ["default", "requirement"]
            and bool(third)
            and b":" in self._between(i + 1)
            and (third in self.known.verbs or third == "every")
        )

    def _consequence(self, i: int) -> Iterator[RuleMatch]:
        """The first imperative behind a comma, semicolon or colon, at most 14 words on, in any sentence."""
        for j in range(i + 1, min(i + 1 + _CONDITION_REACH, len(self.words))):
            mark = self._mark_before(j, b" \t\r\n")
            if mark is None or mark not in _CLAUSE_MARKS:
                continue
            if self.words[j] == "make" and j + 3 >= len(self.words):
                return
            if self.words[j : j + 3] == ["make", "sure", "to"] and self.words[j + 3] in self.known.verbs:
                yield self._finding(j, j + 2, "obligation", "if_make_sure")
                return
            if self.words[j : j + 2] == ["do", "not"] and self._word(j + 2) in self.known.verbs:
                yield self._finding(j, j + 1, "forbidden", "if_do_not")
                return
            if self.words[j] in self.known.verbs:
                yield self._finding(j, j, "obligation", "if_verb")
                return

    def _third_person(self, i: int) -> Iterator[RuleMatch]:
        last = i if self.words[i] in self.known.subjects else None
        if any(tuple(self.words[i : i + len(phrase)]) == phrase for phrase in self.known.phrase_subjects):
            last = i + 1
        if last is None:
            return
        for j in range(last + 1, min(last + 1 + _SUBJECT_REACH, len(self.words))):
            should_be = self.words[j : j + 2] == ["should", "be"] and self._word(j + 2) in self.known.verbs
            if self.words[j] in self.known.binding_modals or should_be:
                yield self._finding(j, j, "obligation", "third_person")
                return

    def _set_up_imperative(self, i: int, is_set_up: bool) -> Iterator[RuleMatch]:
        is_verb = self.words[i] in self.known.verbs
        if is_set_up and is_verb and not self._is_metatext(i):
            yield self._finding(i, i, "obligation", "set_up")
        elif is_set_up and self.words[i] == "then":
            verb = next((j for j in range(i + 1, len(self.words)) if self.words[j] in self.known.verbs), None)
            if verb is not None:
                yield self._finding(verb, verb, "obligation", "set_up_then")
        elif is_verb and i > 0 and self.words[i - 1] == "but":
            yield self._finding(i, i, "obligation", "but")
        elif is_verb and self._mark_before(i, b"") == ord(","):
            yield self._finding(i, i, "obligation", "comma")
        elif is_set_up and self.words[i : i + 2] == ["don", "t"] and self._word(i + 2) in self.known.verbs:
            yield self._finding(i + 2, i + 2, "forbidden", "set_up_do_not")

    def _sets_up(self, i: int) -> bool:
        word = self.words[i]
        return (
            (word == "get" and i > 0 and self.words[i - 1] == "to")
            or (word in ("need", "hit") and i > 1 and self.words[i - 2 : i] == ["if", "you"])
            or (word == "tests" and i > 0 and self.words[i - 1] == "the" and self._word(i + 1) == "are")
        )

    def _is_metatext(self, i: int) -> bool:
        is_behind_colon = self._mark_before(i, b" \t\r\n") == ord(":")
        return is_behind_colon and any(tuple(self.words[max(0, i - 4) : i]) == said for said in self.known.metatext)

    def _word(self, i: int) -> str:
        return self.words[i] if i < len(self.words) else ""

    def _between(self, i: int) -> bytes:
        """What stands between a word and the next."""
        return self.text[self.ends[i] : self.starts[i + 1]]

    def _mark_before(self, i: int, skipped: bytes) -> int | None:
        """The first byte before a word that is not skipped; None at the start of the text."""
        place = self.starts[i] - 1
        while place >= 0 and self.text[place] in skipped:
            place -= 1
        return self.text[place] if place >= 0 else None

    def _finding(self, first: int, last: int, modality: Modality, rule: str) -> RuleMatch:
        return RuleMatch(self.starts[first], self.ends[last], modality, rule)
