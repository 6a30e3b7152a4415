"""Guidance by a scanner of ASCII words, exactly as libravdb memory 1.4.4 has it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from lcm.compaction.guidance.protected import GuidanceMatches, Modality, RuleMatch
from lcm.encoding import from_yaml

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


@cache
def _known() -> Mapping[str, frozenset[str]]:
    """The words and phrases of `scanner_words.yaml`, by their kinds."""
    text = resources.files("lcm.compaction.guidance").joinpath("scanner_words.yaml").read_text("utf-8")
    kinds = from_yaml(text).items()
    return {kind: frozenset(listed.split() if isinstance(listed, str) else listed) for kind, listed in kinds}


class _Scan:
    """One text under the scanner."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        found = list(_WORD.finditer(text))
        self.raw = [match.group().decode("ascii") for match in found]
        self.words = [word.lower() for word in self.raw]
        self.starts = [match.start() for match in found]
        self.ends = [match.end() for match in found]

    def findings(self) -> Iterator[RuleMatch]:
        you: int | None = None
        is_set_up = False
        for i, word in enumerate(self.words):
            mark = self._mark_before(i, b" \t\r")
            is_start = mark in (None, *_SENTENCE_ENDS)
            is_set_up = is_set_up and mark not in (None, *b"\n.")
            if word == "you":
                you = i
                if is_start and self._is("persona_verbs", i + 1):
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
        if self._is("narrative_verbs", i + 2 if after == "to" else i + 1):
            return
        if word == "should":
            yield self._finding(i, i, "obligation", "you_modal")
        elif word == "may" or self._is("binding_modals", i):
            modality: Modality = "permitted" if word == "may" else "obligation"
            yield self._finding(i, i, "forbidden" if after == "not" else modality, "you_modal")
        elif word in ("never", "cannot") or (word == "can" and after == "not"):
            yield self._finding(i, i, "forbidden", "you_modal")

    def _structure(self, i: int) -> Iterator[RuleMatch]:
        if self._is("labels", i):
            for last in (i, i + 1):
                if b":" in self._between(last):
                    yield self._finding(i, last, "obligation", "label")
                    return
        if " ".join(self.raw[i : i + 2]) in _known()["manifest_fields"] and b":" in self._between(i + 1):
            yield self._finding(i, i + 1, "obligation", "manifest_field")
            return
        if self.raw[i] == "ON":
            last = i
            while last + 1 < len(self.raw) and self.raw[last + 1].isupper() and b"->" not in self._between(last):
                last += 1
            if 1 <= last - i <= 3 and b"->" in self._between(last):
                yield self._finding(i, last, "obligation", "arrow")
                return
        if self.words[i] == "every":
            for j in range(i + 1, i + 1 + _EVERY_REACH):
                if self._is("binding_modals", j) or self._word(j) == "should":
                    yield self._finding(j, j, "obligation", "every")
                    return

    def _imperative(self, i: int) -> Iterator[RuleMatch]:
        word, after = self.words[i], self._word(i + 1)
        if word in ("always", "please", "strictly") and self._is_verb(i + 1):
            yield self._finding(i, i, "obligation", "adverb")
        elif word == "never" and self._is_verb(i + 1):
            yield self._finding(i, i, "forbidden", "never")
        elif self._says(i, "do not") and self._is_verb(i + 2):
            yield self._finding(i, i + 1, "forbidden", "do_not")
        elif word == "no" and after:
            yield self._finding(i, i, "forbidden", "no")
        elif word == "bid" and (banned := self._banned(i)) is not None:
            yield self._finding(banned, banned, "forbidden", "bid")
        elif self._says(i, "don t forget"):
            yield self._finding(i, i + 2, "obligation", "do_not_forget")
        elif self._is_default_requirement(i):
            yield self._finding(i, i + 1, "obligation", "default_requirement")
        elif word == "if":
            yield from self._consequence(i)
        elif self._is_verb(i) and not self._is_metatext(i):
            yield self._finding(i, i, "obligation", "verb")

    def _banned(self, i: int) -> int | None:
        return next((j for j in range(i + 1, i + 1 + _BID_REACH) if self._word(j) in ("prohibited", "forbidden")), None)

    def _is_default_requirement(self, i: int) -> bool:
        is_told = self._is_verb(i + 2) or self._word(i + 2) == "every"
        return self._says(i, "default requirement") and is_told and b":" in self._between(i + 1)

    def _consequence(self, i: int) -> Iterator[RuleMatch]:
        """The first imperative behind a comma, semicolon or colon, at most 14 words on, in any sentence."""
        for j in range(i + 1, min(i + 1 + _CONDITION_REACH, len(self.words))):
            mark = self._mark_before(j, b" \t\r\n")
            if mark is None or mark not in _CLAUSE_MARKS:
                continue
            if self.words[j] == "make" and j + 3 >= len(self.words):
                return
            if self._says(j, "make sure to") and self._is_verb(j + 3):
                yield self._finding(j, j + 2, "obligation", "if_make_sure")
                return
            if self._says(j, "do not") and self._is_verb(j + 2):
                yield self._finding(j, j + 1, "forbidden", "if_do_not")
                return
            if self._is_verb(j):
                yield self._finding(j, j, "obligation", "if_verb")
                return

    def _third_person(self, i: int) -> Iterator[RuleMatch]:
        is_phrase = " ".join(self.words[i : i + 2]) in _known()["phrase_subjects"]
        if not is_phrase and not self._is("subjects", i):
            return
        last = i + 1 if is_phrase else i
        for j in range(last + 1, last + 1 + _SUBJECT_REACH):
            if self._is("binding_modals", j) or (self._says(j, "should be") and self._is_verb(j + 2)):
                yield self._finding(j, j, "obligation", "third_person")
                return

    def _set_up_imperative(self, i: int, is_set_up: bool) -> Iterator[RuleMatch]:
        is_verb = self._is_verb(i)
        if is_set_up and is_verb and not self._is_metatext(i):
            yield self._finding(i, i, "obligation", "set_up")
        elif is_set_up and self.words[i] == "then":
            verb = next((j for j in range(i + 1, len(self.words)) if self._is_verb(j)), None)
            if verb is not None:
                yield self._finding(verb, verb, "obligation", "set_up_then")
        elif is_verb and i > 0 and self.words[i - 1] == "but":
            yield self._finding(i, i, "obligation", "but")
        elif is_verb and self._mark_before(i, b"") == ord(","):
            yield self._finding(i, i, "obligation", "comma")
        elif is_set_up and self._says(i, "don t") and self._is_verb(i + 2):
            yield self._finding(i + 2, i + 2, "forbidden", "set_up_do_not")

    def _sets_up(self, i: int) -> bool:
        return (
            (self.words[i] == "get" and i > 0 and self.words[i - 1] == "to")
            or (self.words[i] in ("need", "hit") and i > 1 and self._says(i - 2, "if you"))
            or (i > 0 and self._says(i - 1, "the tests are"))
        )

    def _is_metatext(self, i: int) -> bool:
        is_behind_colon = self._mark_before(i, b" \t\r\n") == ord(":")
        return is_behind_colon and " ".join(self.words[max(0, i - 4) : i]) in _known()["metatext"]

    def _is(self, kind: str, i: int) -> bool:
        return self._word(i) in _known()[kind]

    def _is_verb(self, i: int) -> bool:
        return self._is("imperative_verbs", i)

    def _says(self, i: int, phrase: str) -> bool:
        """Whether words from one on are a phrase."""
        words = phrase.split()
        return self.words[i : i + len(words)] == words

    def _word(self, i: int) -> str:
        return self.words[i] if i < len(self.words) else ""

    def _between(self, i: int) -> bytes:
        """What stands between a word and the next; empty where there is none."""
        return self.text[self.ends[i] : self.starts[i + 1]] if i + 1 < len(self.words) else b""

    def _mark_before(self, i: int, skipped: bytes) -> int | None:
        """The first byte before a word that is not skipped; None at the start of the text."""
        end = self.ends[i - 1] if i else 0
        before = self.text[max(0, end - 1) : self.starts[i]].rstrip(skipped)
        return before[-1] if before else None

    def _finding(self, first: int, last: int, modality: Modality, rule: str) -> RuleMatch:
        return RuleMatch(self.starts[first], self.ends[last], modality, rule)
