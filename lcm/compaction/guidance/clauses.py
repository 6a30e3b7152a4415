"""Guidance by English clauses: which rule, in which words; no model.

Ours, for what a scanner of single words gets wrong: small talk, nouns that look like verbs, what was said of the past,
and rules about third persons and things.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from rapidfuzz.distance import OSA

from lcm.compaction.guidance.protected import GuidanceMatches, Modality, RuleMatch
from lcm.encoding import from_yaml

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`+[^`\n]+`+")
_QUOTE = re.compile(r'"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]')
_BULLET = re.compile(r"[ \t]*(?:(?:[-*+•–]|\d{1,3}[.)]|#{1,6}|>|\[[ xX]?\])[ \t]+)*")
_TOKEN = re.compile(r"[^\W_]+(?:[-'’.@/_+#&%*][^\W_]+)*%?|->|=>|\.{3}|\S")
_ENDS = frozenset(".!?…")
_SHORTEST_TYPO = 5
_WRAPPED_LENGTH = 50
_LONGEST_SENTENCE = 200  # words: patterns take time quadratic in what is no prose


_BREAKS = frozenset(",;:()–—-….!?") | {"..."}
_CONNECTORS = frozenset(("so", "but", "because", "although", "though"))
_HARD_BREAKS = frozenset(";:–—-(…") | {"...", "so", "but"}
_LONGEST_LABEL = 4


class _Rule(NamedTuple):
    """A pattern, what it says, and which cues it needs or cannot bear; modality None = no rule at all."""

    name: str
    modality: Modality | None
    pattern: re.Pattern[str]
    needs: tuple[str, ...]
    unless: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Grammar:
    """What stands in `clause_rules.yaml` and `spelling.yaml`."""

    idiom: _Rule
    rules: tuple[_Rule, ...]
    patterns: Mapping[str, re.Pattern[str]]
    sentence_cues: frozenset[str]
    """Those that are looked for in the whole sentence, not in its part."""
    words: Mapping[str, frozenset[str]]
    cues: tuple[str, ...]
    """Words that are put right where they are misspelt."""
    forms: Mapping[str, tuple[str, ...]]
    """How short forms are spelt out, whole words and endings."""
    endings: Mapping[str, tuple[str, ...]]


@cache
def _grammar() -> _Grammar:
    folder = resources.files("lcm.compaction.guidance")
    files = (folder.joinpath(f"{name}.yaml").read_text("utf-8") for name in ("clause_rules", "spelling"))
    given, spelling = (from_yaml(text) for text in files)
    words = {name: frozenset(listed.split()) for name, listed in (given["verbs"] | given["words"]).items()}
    words["verb"] = words["conduct"] | words["work"]
    parts = given["parts"] | {name: f"(?:{'|'.join(sorted(words[name]))})" for name in (*given["verbs"], "verb")}

    def compiled(pattern: str) -> re.Pattern[str]:
        while (filled := re.sub(r"<(\w+)>", lambda found: parts[found[1]], pattern)) != pattern:
            pattern = filled
        return re.compile(pattern)

    idiom, *rules = (
        _Rule(
            rule["rule"],
            None if rule["modality"] == "none" else rule["modality"],
            compiled(rule["pattern"]),
            tuple(rule.get("needs", ())),
            tuple(rule.get("unless", ())),
        )
        for rule in given["rules"]
    )
    shapes = given["guards"] | given["leads"] | given["label"] | given["shapes"]
    shapes |= given["sentence_cues"] | given["part_cues"]
    words |= {"verb": words["verb"] | {"be"}, "abbreviations": frozenset(spelling["abbreviations"].split())}
    return _Grammar(
        idiom,
        tuple(rules),
        {name: compiled(pattern) for name, pattern in shapes.items()}
        | {"not_prose": re.compile(spelling["not_prose"])},
        frozenset(given["sentence_cues"]),
        words,
        tuple(spelling["cues"].split()),
        *({short: tuple(full.split()) for short, full in spelling[kind].items()} for kind in ("forms", "endings")),
    )


def _at(shape: str, said: str) -> re.Match[str] | None:
    """How words begin."""
    return _grammar().patterns[shape].match(said)


def _in(shape: str, said: str) -> bool:
    return _grammar().patterns[shape].search(said) is not None


def _is(kind: str, word: str) -> bool:
    return word in _grammar().words[kind]


class _Word(NamedTuple):
    """One word or mark."""

    text: str
    start: int
    """Code point offset in the text."""
    end: int


def _sentences(text: str) -> Iterator[tuple[tuple[_Word, ...], bool]]:
    """Every sentence of a text outside of code blocks; and whether a bullet or a number stands before it.

    Code and quotations within a line become the single words `code` and `quote`; contractions are spelt out ("don't" is
    do not), and a misspelt cue word is put right. A line that begins in lower case goes on with the one before, if that
    one is long enough to have been wrapped, unless a bullet or an empty line stands between.
    """
    masked = _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for start, end, is_item in _blocks(masked):
        yield from _split(list(_words(masked, start, end)), is_item)


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, is an item) of every paragraph or item; a line may belong to the block of the line before."""
    block: tuple[int, int, bool] | None = None
    place = 0
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if _at("not_prose", line):
            line = " " * (len(line) - 1) + "\n"
        mark = _BULLET.match(line)
        content = place + (mark.end() if mark else 0)
        is_item = bool(mark and mark.group().strip())
        body = line[content - place :].strip()
        before = lines[i - 1].rstrip() if i else ""
        is_wrapped = len(before) >= _WRAPPED_LENGTH and before[-1] not in _ENDS | {":"}
        if block is not None and is_wrapped and not is_item and body[:1].islower():
            block = (block[0], place + len(line), block[2])
        else:
            if block is not None:
                yield block
            block = (content, place + len(line), is_item) if body else None
        place += len(line)
    if block is not None:
        yield block


def _words(text: str, start: int, end: int) -> Iterator[_Word]:
    part = text[start:end]
    for pattern, name in ((_CODE, "code"), (_QUOTE, "quote")):
        part = pattern.sub(lambda found, name=name: name.ljust(len(found.group()), "\0"), part)  # type: ignore[misc]
    for found in _TOKEN.finditer(part.replace("\0", " ")):
        first, last = start + found.start(), start + found.end()
        for word in _plain(found.group().lower().replace("’", "'")):
            yield _Word(word, first, last)


def _plain(word: str) -> tuple[str, ...]:
    known = _grammar()
    if word in known.forms:
        return known.forms[word]
    for ending, full in known.endings.items():
        if word.endswith(ending) and len(word) > len(ending):
            return (word[: -len(ending)], *full)
    if len(word) >= _SHORTEST_TYPO and word.isalpha():
        for cue in known.cues:
            # The first and the last letter of a misspelt word are mostly right, those of an inflected one are not.
            is_like = word[0] == cue[0] and (word[-1] == cue[-1] or sorted(word) == sorted(cue))
            if is_like and OSA.distance(word, cue, score_cutoff=1) == 1:
                return (cue,)
    return (word,)


def _split(words: list[_Word], is_item: bool) -> Iterator[tuple[tuple[_Word, ...], bool]]:
    begin = 0
    for i, word in enumerate(words):
        is_last = i + 1 == len(words)
        if word.text[0] in _ENDS:
            is_abbreviation = word.text == "." and i > begin and _is("abbreviations", words[i - 1].text)
            if not is_last and (is_abbreviation or words[i + 1].text[0] in _ENDS):
                continue
            if i > begin:
                yield tuple(words[begin : i + 1]), is_item
            begin = i + 1
        elif is_last or i + 1 - begin >= _LONGEST_SENTENCE:
            yield tuple(words[begin : i + 1]), is_item
            begin = i + 1


class _Part(NamedTuple):
    """One part of a sentence."""

    connector: str
    """The mark or word before it."""
    words: tuple[_Word, ...]

    @property
    def texts(self) -> list[str]:
        return [word.text for word in self.words]

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    def finding(self, first: int, last: int, modality: Modality, rule: str) -> RuleMatch:
        """What the words from the first to the last say, in code points."""
        return RuleMatch(self.words[first].start, self.words[min(last, len(self.words) - 1)].end, modality, rule)

    def matched(self, span: tuple[int, int], rule: _Rule) -> RuleMatch:
        assert rule.modality is not None
        first = self.text[: span[0]].count(" ")
        last = first + self.text[span[0] : span[1]].strip().count(" ")
        return self.finding(first, last, rule.modality, rule.name)


@dataclass(frozen=True, slots=True)
class ClauseRules:
    """Every sentence is cut into parts at marks and conjunctions; each part is a rule by the first thing that fits: an
    imperative that holds on and on, or one of the patterns of `clause_rules.yaml`.

    An imperative holds on and on by its verb ("avoid", "prefer"), by a word of the sentence ("always", "every", "from
    now on") or by a condition before it; "for me, today" and "that file" take it back. Questions, code, log lines,
    quotations, and what is said of the past or by somebody else are no rules.
    """

    def read(self, text: str) -> GuidanceMatches:
        return GuidanceMatches(
            tuple(_in_bytes(text, found) for said in _sentences(text) for found in _Reading(*said).findings())
        )


@lru_cache(maxsize=20_000)
def modalities(sentence: str) -> tuple[Modality, ...]:
    """What each rule of a sentence says, in order: what a summary keeps and which facts it states both depend on it."""
    return tuple(found.modality for found in ClauseRules().read(sentence).findings)


def _in_bytes(text: str, finding: RuleMatch) -> RuleMatch:
    def width(part: str) -> int:
        return len(part.encode("utf-8", "surrogatepass"))

    start = width(text[: finding.start])
    return finding._replace(start=start, end=start + width(text[finding.start : finding.end]))


class _Reading:
    """A sentence, and what is known of it while its parts are read from left to right."""

    def __init__(self, words: tuple[_Word, ...], is_item: bool) -> None:
        self.is_item = is_item
        self.whole = _Part("", _without_asides(words))
        self.text = self.whole.text
        self.is_strong = _in("strong", self.text)
        self.is_once = _in("one_off", self.text) and not self.is_strong
        self.holds = False
        """A condition stood before the part that is read now."""
        self.is_labelled = False
        """The part stands behind a label and a colon."""

    def findings(self) -> Iterator[RuleMatch]:
        if not self.text or _in("hypothetical", self.text):
            return
        is_condition = bool(re.match(r"should (?!i\b|we\b)[^?]* ,", self.text))
        if self.text.endswith("?") or (_at("interrogative", self.text) and not is_condition):
            polite = _at("polite_request", self.text)
            if not (polite and self.is_strong):
                return
            self.whole = _Part("", self.whole.words[polite.group().count(" ") :])
            self.text = self.whole.text
        for rule in _grammar().rules:
            if rule.name in ("event_arrow", "labelled_command") and (found := rule.pattern.search(self.text)):
                yield self.whole.matched(found.span(), rule)
                return
        is_open = True
        for place, part in enumerate(parts := _parts(self.whole.words)):
            if place == 1 and part.connector == ":" and len(parts[0].words) <= _LONGEST_LABEL:
                self.is_labelled = not _at("plain", parts[0].text)
            is_metatext = part.connector == ":" and bool(re.search(r"\b(?:is|are|was|goal)$", parts[place - 1].text))
            is_open = not is_metatext and (
                is_open or part.connector in _HARD_BREAKS or _at("insistence", f"{part.text} ") is not None
            )
            is_followed = place + 1 < len(parts) and parts[place + 1].connector == ","
            found_here = self._rule(part, is_open, is_followed)
            if found_here is not None:
                yield found_here
            is_condition = _at("condition", part.text) is not None
            self.holds = self.holds or (is_condition and not _in("past", part.text))
            is_open = is_condition or found_here is not None or _at("setting", part.text) is not None

    def _rule(self, part: _Part, is_open: bool, is_followed: bool) -> RuleMatch | None:
        """The first thing that fits a part.

        Args:
            is_open: an imperative may begin here.
            is_followed: a comma stands behind the part.
        """
        if part.connector != ":" and _grammar().idiom.pattern.match(part.text):
            return None
        if is_open and (told := self._imperative(part)) is not None:
            return told
        is_condition = _at("condition", part.text) is not None
        if (is_condition or part.texts[0] == "to") and (told := self._behind_condition(part, is_followed)) is not None:
            return told
        for rule in _grammar().rules:
            found = rule.pattern.search(part.text)
            if found is None or (is_condition and found.start() == 0):
                continue
            if rule.needs and not any(self._has(cue, part) for cue in rule.needs):
                continue
            if not any(self._has(cue, part) for cue in rule.unless):
                return part.matched(found.span(), rule)
        modality: Modality | None = None
        if self.is_labelled:
            modality = "forbidden" if _in("forbids", part.text) else "obligation" if _in("obliges", self.text) else None
        return part.finding(0, len(part.words) - 1, modality, "labelled") if modality else None

    def _has(self, cue: str, part: _Part) -> bool:
        known = {"condition": self.holds, "item": self.is_item, "labelled": self.is_labelled, "one_off": self.is_once}
        if cue in known:
            return known[cue]
        return _in(cue, self.text if cue in _grammar().sentence_cues else part.text)

    def _imperative(self, part: _Part) -> RuleMatch | None:
        """An imperative that holds on and on."""
        texts = part.texts
        wanted = _at("wanted", f"{part.text} ")
        i = wanted.group().count(" ") if wanted else 0
        while i < len(texts) and _is("fillers", texts[i]):
            i += 1
        rest = texts[i:]
        if len(rest) == 1 and self.holds and _is("verb", rest[0]):
            return part.finding(i, i, "forbidden" if rest[0] in ("refuse", "stop") else "obligation", "imperative")
        if len(rest) < 2:
            return None
        said = " ".join(rest)
        if match := _at("negated_reminder", said):
            modality: Modality = "permitted" if match[1] == "hesitate" else "obligation"
            return None if self.is_once else part.finding(i, i + 3, modality, "do_not_forget")
        if match := _at("reminder", said):
            is_trying = said.startswith(("try", "be careful", "mind")) and not (
                self.is_strong or self.holds or _at("earnest_try", said)
            )
            modality = "forbidden" if match[1] in ("not to", "never to", "no") else "obligation"
            last = i + match.group().count(" ")
            return None if self.is_once or is_trying else part.finding(i, last, modality, "reminder")
        if rest[0] == "never" or rest[:2] == ["do", "not"] or (wanted and rest[0] == "not"):
            return self._negative(part, i)
        if "always" in texts[:i] and not _is("never_commands", rest[0]):
            is_followed = _at("follower", rest[1]) and not _at("follower", rest[0]) and not _is("prepositions", rest[0])
            if _is("verb", rest[0]) or is_followed:
                return part.finding(max(0, i - 1), i, "obligation", "always")
        return self._positive(part, i, rest, said)

    def _behind_condition(self, part: _Part, is_followed: bool) -> RuleMatch | None:
        """An imperative behind a condition that no comma ends."""
        texts = part.texts
        for i in range(3, len(texts) - 1):
            is_verb = _is("verb", texts[i]) and texts[0] != "to" and not is_followed
            is_object = _at("follower", texts[i + 1]) and texts[i + 1] not in ("to", "and", "or", "as", "at")
            starts = (is_verb and is_object) or (
                texts[i] in ("never", "always", "just", "please")
                or texts[i : i + 2] in (["do", "not"], ["make", "sure"])
            )
            if starts and not _is("subjects", texts[i - 1]) and not texts[i - 1].endswith("'s"):
                self.holds = True
                return self._imperative(_Part("", part.words[i:]))
        return None

    def _negative(self, part: _Part, i: int) -> RuleMatch | None:
        texts = part.texts
        j = i + (2 if texts[i] == "do" else 1)
        while j < len(texts) and texts[j] in (
            "ever",
            "even",
            "just",
            "simply",
            "also",
            "under",
            "to",
            "always",
            "please",
        ):
            j += 1
        if j >= len(texts):
            return None
        verb = texts[j]
        if texts[i] == "never" and not _is("verb", verb):
            is_past = verb.endswith(("ed", "ing")) or _is("never_commands", verb)
            if is_past or j + 1 >= len(texts):
                return None
        if texts[i] == "do" and verb in ("you", "i", "we", "they", "worry", "bother", "panic"):
            return None
        if self.is_once or re.search(r"\b(?:yet|this one|that one|now)$", part.text):
            return None
        return part.finding(i, j, "forbidden", "negative_imperative")

    def _positive(self, part: _Part, i: int, rest: list[str], said: str) -> RuleMatch | None:
        if self.is_once:
            return None
        if match := _at("avoidance_phrase", said):
            return part.finding(i, i + match.group().count(" "), "forbidden", "avoidance")
        is_deictic = _at("deictic", said) is not None
        if _is("avoidance", rest[0]):
            if rest[0] in ("stop", "quit", "cease") and not rest[1].endswith("ing"):
                return None
            is_noun = rest[0] == "stop" and len(rest) == 2
            if ((is_noun or is_deictic) and not self.is_strong) or not _is_command(rest):
                return None
            return part.finding(i, i, "forbidden", "avoidance")
        if rest[0] == "be":
            return None if _at("being_somewhere", said) else part.finding(i, i + 1, "obligation", "imperative")
        if _is("verb", rest[0]) and _at("negative_object", said):
            return part.finding(i, i + 1, "forbidden", "imperative_without")
        if not (_is("verb", rest[0]) or self._looks_like_verb(rest)) or not _is_command(rest):
            return None
        is_general = any(word in ("only", "always", "strictly", "generally", "usually") for word in part.texts[:i])
        lasts = self.is_strong or self.holds or is_general
        is_conduct = _is("conduct", rest[0])
        if is_deictic and not lasts and not (is_conduct and _in("trailing_condition", said)):
            return None
        if is_conduct or lasts or self._is_standing(rest):
            return part.finding(i, i, "obligation", "imperative")
        return None

    def _is_standing(self, rest: list[str]) -> bool:
        """Whether an imperative of work holds on and on by what it is said of."""
        if self.is_item or self.is_labelled:
            return True
        is_weak = _in("weak", self.text)
        is_one = rest[1] in ("a", "an") and is_weak
        is_definite = rest[1] in ("the", "my", "a", "an", "me", "him", "her", "your")
        if _is("request", rest[0]) or (is_definite and not is_one):
            return False
        return is_weak or _at("plural_object", " ".join(rest[1:])) is not None

    def _looks_like_verb(self, rest: list[str]) -> bool:
        """Any word may be an imperative behind a condition, or before "every" and "all"."""
        is_base = rest[0].replace("-", "").isalpha() and not rest[0].endswith(("s", "ed", "ing", "ly"))
        is_told = self.holds or rest[1] in ("every", "each", "all", "any")
        return is_told and is_base and not _at("closed_class", rest[0]) and _at("follower", rest[1]) is not None


def _is_command(rest: list[str]) -> bool:
    """Whether a word that can be a verb is one here, and no noun with its own verb behind it."""
    if rest[1] in ("not", "of", ",", "is", "was", "are", "were", "has", "had", "ahead"):
        return False
    if _at("follower", rest[1]) and rest[1] not in ("at", "for", "by", "from", "and", "or", "out", "up"):
        return True
    if _is("clause_taking", rest[0]):
        return True
    for place, word in enumerate(rest[1:], 1):
        if _is("subordinators", word):
            return True
        behind = rest[place + 1] if place + 1 < len(rest) else "."
        is_participle = word.endswith("ed") and _is("prepositions" if place == 1 else "past_marks", behind)
        if _at("finite_word", word) or is_participle:
            return False
    return True


def _without_asides(words: tuple[_Word, ...]) -> tuple[_Word, ...]:
    """Words without what stands between two commas and says nothing of its own ("as a rule")."""
    words = tuple(
        word
        for i, word in enumerate(words)
        if not (word.text == "," and [w.text for w in words[i - 1 : i + 2 : 2]] == ["never", "ever"])
    )
    text = _Part("", words).text
    while found := _grammar().patterns["aside"].search(text):
        first = text[: found.start()].count(" ") + 1
        words = words[:first] + words[first + found.group().count(" ") :]
        text = _Part("", words).text
    return words


def _parts(words: tuple[_Word, ...]) -> list[_Part]:
    """The parts of a sentence, in order, without the marks between them."""
    parts: list[_Part] = []
    connector, begin = "", 0
    for i, word in enumerate(words):
        if word.text in _BREAKS or _connects(words, i):
            if i > begin:
                parts.append(_Part(connector, words[begin:i]))
            begin, connector = i + 1, word.text
    if begin < len(words):
        parts.append(_Part(connector, words[begin:]))
    return parts


def _connects(words: Sequence[_Word], i: int) -> bool:
    """Whether a word joins two clauses: "so" does, in "say so" and "so that" it does not."""
    if words[i].text not in _CONNECTORS or i + 1 == len(words) or words[i + 1].text in _BREAKS:
        return False
    is_other = words[i + 1].text in ("that", "much", "many", "far", "long", "as", "to", "on", "of")
    return not (words[i].text in ("so", "because") and is_other)
