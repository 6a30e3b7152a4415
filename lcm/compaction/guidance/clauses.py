"""Guidance by English clauses: which rule, in which words; no model.

Ours, for what a scanner of single words gets wrong: small talk, nouns that look like verbs, what was said of the past,
and rules about third persons and things.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lcm.compaction.guidance.cues import SentenceCues, finding
from lcm.compaction.guidance.grammar import Rule
from lcm.compaction.guidance.reading import GuidanceMatches, Modality, RuleMatch
from lcm.compaction.guidance.segments import HARD_BREAKS, Segment, segments
from lcm.compaction.guidance.sentences import Word, sentences

_BUILDERS = frozenset(("create",))


def starts_as_imperative(cues: SentenceCues, segment: Segment) -> bool:
    """Whether a part is an imperative by its first words, whatever stands before it."""
    return bool(
        cues.known.shapes["insistence"].match(
            segment.text + " ",
        )
    )


def command(cues: SentenceCues, segment: Segment) -> RuleMatch | None:
    """An imperative that holds on and on."""
    words = segment.words
    wanted = cues.known.shapes["wanted"].match(segment.text + " ")
    is_wanted = wanted is not None
    i = wanted.group().count(" ") if wanted else 0
    texts = segment.texts
    while i < len(texts) and texts[i] in cues.known.words["fillers"]:
        i += 1
    rest = texts[i:]
    if len(rest) == 1 and cues.holds and cues.is_verb(rest[0]):
        return finding(words, i, i, "forbidden" if rest[0] in ("refuse", "stop") else "obligation", "imperative")
    if len(rest) < 2:
        return None
    said = " ".join(rest)
    once = cues.on_sentence("one_off") and not cues.is_strong
    if match := cues.known.shapes["negated_reminder"].match(said):
        modality: Modality = "permitted" if match[1] == "hesitate" else "obligation"
        return None if once else finding(words, i, i + 3, modality, "do_not_forget")
    if match := cues.known.shapes["reminder"].match(
        said,
    ):
        is_trying = said.startswith(("try", "be careful", "mind")) and not (
            cues.is_strong or cues.holds or cues.known.shapes["earnest_try"].match(said)
        )
        if once or is_trying:
            return None
        modality = "forbidden" if match[1] in ("not to", "never to", "no") else "obligation"
        return finding(words, i, i + match.group().count(" "), modality, "reminder")
    if rest[0] == "never" or rest[:2] == ["do", "not"] or (is_wanted and rest[0] == "not"):
        return _negative(cues, words, i, texts, once)
    if (
        texts[:i].count("always")
        and rest[0] not in cues.known.words["never_commands"]
        and (
            cues.is_verb(rest[0])
            or bool(
                cues.known.shapes["follower"].match(rest[1])
                and not cues.known.shapes["follower"].match(rest[0])
                and rest[0] not in cues.known.words["prepositions"]
            )
        )
    ):
        return finding(words, max(0, i - 1), i, "obligation", "always")
    return _positive(cues, words, i, once, is_wanted)


def imperative_after_condition(cues: SentenceCues, segment: Segment, is_followed: bool) -> RuleMatch | None:
    """An imperative behind a condition that no comma ends."""
    texts = segment.texts
    for i in range(3, len(texts) - 1):
        is_verb = cues.is_verb(texts[i]) and texts[0] != "to" and not is_followed
        starts = (
            is_verb
            and cues.known.shapes["follower"].match(texts[i + 1])
            and texts[i + 1] not in ("to", "and", "or", "as", "at")
        ) or (
            texts[i] in ("never", "always", "just", "please") or texts[i : i + 2] in (["do", "not"], ["make", "sure"])
        )
        before = texts[i - 1]
        if starts and before not in cues.known.words["subjects"] and not before.endswith("'s"):
            cues.holds = True
            return command(cues, Segment("", segment.words[i:]))
    return None


def _negative(cues: SentenceCues, words: Sequence[Word], i: int, texts: list[str], once: bool) -> RuleMatch | None:
    j = i + (2 if texts[i] == "do" else 1)
    while j < len(texts) and texts[j] in ("ever", "even", "just", "simply", "also", "under", "to", "always", "please"):
        j += 1
    if j >= len(texts):
        return None
    verb = texts[j]
    is_verb = cues.is_verb(verb)
    if texts[i] == "never" and not is_verb:
        is_past = verb.endswith(("ed", "ing")) or verb in cues.known.words["never_commands"]
        if is_past or j + 1 >= len(texts):
            return None
    if texts[i] == "do" and verb in ("you", "i", "we", "they", "worry", "bother", "panic"):
        return None
    if once or re.search(r"\b(?:yet|this one|that one|now)$", " ".join(texts)):
        return None
    return finding(words, i, j, "forbidden", "negative_imperative")


def _positive(cues: SentenceCues, words: Sequence[Word], i: int, once: bool, is_wanted: bool) -> RuleMatch | None:
    rest = [word.text for word in words[i:]]
    said = " ".join(rest)
    if match := cues.known.shapes["avoidance_phrase"].match(
        said,
    ):
        return None if once else finding(words, i, i + match.group().count(" "), "forbidden", "avoidance")
    if rest[0] in cues.known.verbs["avoidance"]:
        if rest[0] in ("stop", "quit", "cease") and not rest[1].endswith("ing"):
            return None
        is_noun = rest[1].endswith("ing") and len(rest) == 2 and not cues.is_strong
        is_deictic = bool(cues.known.on_segment["deictic"].match(said)) and not cues.is_strong
        if once or is_deictic or (is_noun and rest[0] == "stop") or not _is_command(cues, rest):
            return None
        return finding(words, i, i, "forbidden", "avoidance")
    if rest[0] == "be":
        is_there = bool(cues.known.shapes["being_somewhere"].match(said))
        return None if once or is_there else finding(words, i, i + 1, "obligation", "imperative")
    if cues.is_verb(rest[0]) and cues.known.shapes["negative_object"].match(said):
        return None if once else finding(words, i, i + 1, "forbidden", "imperative_without")
    if not (cues.is_verb(rest[0]) or _looks_like_verb(cues, rest)) or not _is_command(cues, rest):
        return None
    is_general = any(word.text in ("only", "always", "strictly", "generally", "usually") for word in words[:i])
    lasts = cues.is_strong or cues.holds or is_general
    is_deictic = bool(cues.known.on_segment["deictic"].match(said))
    is_conduct = rest[0] in cues.known.verbs["conduct"]
    if once or (is_deictic and not lasts and not (is_conduct and cues.known.shapes["trailing_condition"].search(said))):
        return None
    if not is_conduct and not lasts:
        if (
            rest[0] in cues.known.verbs["request"]
            and not cues.is_item
            and not cues.is_labelled
            and rest[0] not in _BUILDERS
        ):
            return None
        is_definite = rest[1] in ("the", "my", "a", "an", "me", "him", "her", "your")
        is_general = (
            bool(cues.known.shapes["plural_object"].match(" ".join(rest[1:]))) or cues.is_item or cues.is_labelled
        )
        is_one = rest[1] in ("a", "an") and cues.on_sentence("weak")
        if is_definite and not (cues.is_item or cues.is_labelled or is_one):
            return None
        if not is_general and not cues.on_sentence("weak"):
            return None
    return finding(words, i, i, "obligation", "imperative")


def _looks_like_verb(cues: SentenceCues, rest: list[str]) -> bool:
    """Any word may be an imperative behind a condition, or before "every" and "all"."""
    is_base = rest[0].replace("-", "").isalpha() and not rest[0].endswith(("s", "ed", "ing", "ly"))
    is_told = cues.holds or rest[1] in ("every", "each", "all", "any")
    return (
        is_told
        and is_base
        and not cues.known.shapes["closed_class"].match(rest[0])
        and bool(cues.known.shapes["follower"].match(rest[1]))
    )


def _is_command(cues: SentenceCues, rest: list[str]) -> bool:
    """Whether a word that can be a verb is one here, and no noun with its own verb behind it."""
    if rest[1] == "not" or rest[1] in ("of", ",", "is", "was", "are", "were", "has", "had", "ahead"):
        return False
    if cues.known.shapes["follower"].match(rest[1]) and rest[1] not in (
        "at",
        "for",
        "by",
        "from",
        "and",
        "or",
        "out",
        "up",
    ):
        return True
    if rest[0] in cues.known.words["clause_taking"]:
        return True
    for place, word in enumerate(rest[1:], 1):
        if word in cues.known.words["subordinators"]:
            return True
        behind = rest[place + 1] if place + 1 < len(rest) else "."
        is_participle = word.endswith("ed") and behind in (
            cues.known.words["prepositions"] if place == 1 else cues.known.words["past_marks"]
        )
        if cues.known.shapes["finite"].match(word) or is_participle:
            return False
    return True


_LONGEST_LABEL = 4


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
            tuple(_in_bytes(text, found) for one in sentences(text) for found in _findings(SentenceCues(one)))
        )


def _in_bytes(text: str, finding: RuleMatch) -> RuleMatch:
    def width(part: str) -> int:
        return len(part.encode("utf-8", "surrogatepass"))

    start = width(text[: finding.start])
    return finding._replace(start=start, end=start + width(text[finding.start : finding.end]))


def _findings(cues: SentenceCues) -> Iterator[RuleMatch]:
    if not cues.words or cues.on_sentence("hypothetical"):
        return
    is_condition = bool(re.match(r"should (?!i\b|we\b)[^?]* ,", cues.text))
    if cues.text.endswith("?") or (cues.known.shapes["interrogative"].match(cues.text) and not is_condition):
        polite = cues.known.shapes["polite_request"].match(cues.text)
        if not (polite and cues.is_strong):
            return
        cues.words = cues.words[polite.group().count(" ") :]
        cues.text = " ".join(word.text for word in cues.words)
    whole = Segment("", cues.words)
    for rule in cues.known.rules:
        if rule.name in ("event_arrow", "labelled_command") and (found := rule.pattern.search(cues.text)):
            yield _matched(whole, found.span(), rule)
            return
    is_open = True
    for place, segment in enumerate(parts := segments(cues.words)):
        if place == 1 and segment.connector == ":" and len(parts[0].words) <= _LONGEST_LABEL:
            cues.is_labelled = not cues.known.label["plain"].match(parts[0].text)
        is_metatext = segment.connector == ":" and bool(re.search(r"\b(?:is|are|was|goal)$", parts[place - 1].text))
        is_open = not is_metatext and (
            is_open or segment.connector in HARD_BREAKS or starts_as_imperative(cues, segment)
        )
        is_followed = place + 1 < len(parts) and parts[place + 1].connector == ","
        found_here = _read(cues, segment, is_open, is_followed)
        if found_here is not None:
            yield found_here
        is_condition = bool(cues.known.leads["condition"].match(segment.text))
        cues.holds = cues.holds or (is_condition and not cues.on_segment("past", segment))
        is_open = is_condition or found_here is not None or bool(cues.known.leads["setting"].match(segment.text))


def _read(cues: SentenceCues, segment: Segment, is_open: bool, is_followed: bool) -> RuleMatch | None:
    idiom, *rules = cues.known.rules
    if segment.connector != ":" and idiom.pattern.match(segment.text):
        return None
    if is_open and (told := command(cues, segment)) is not None:
        return told
    is_condition = bool(cues.known.leads["condition"].match(segment.text))
    if (is_condition or segment.texts[0] == "to") and (
        told := imperative_after_condition(cues, segment, is_followed)
    ) is not None:
        return told
    for rule in rules:
        found = rule.pattern.search(segment.text)
        if found is None or (rule.needs and not any(cues.has(need, segment) for need in rule.needs)):
            continue
        if any(cues.has(cue, segment) for cue in rule.unless):
            continue
        if is_condition and found.start() == 0:
            continue
        return _matched(segment, found.span(), rule)
    return _labelled(cues, segment)


def _labelled(cues: SentenceCues, segment: Segment) -> RuleMatch | None:
    if not cues.is_labelled:
        return None
    modality: Modality | None = None
    if cues.known.label["forbids"].search(segment.text):
        modality = "forbidden"
    elif cues.known.label["obliges"].search(cues.text):
        modality = "obligation"
    if modality is None:
        return None
    return finding(segment.words, 0, len(segment.words) - 1, modality, "labelled")


def _matched(segment: Segment, span: tuple[int, int], rule: Rule) -> RuleMatch:
    assert rule.modality is not None
    first = segment.text[: span[0]].count(" ")
    last = first + segment.text[span[0] : span[1]].strip().count(" ")
    return finding(segment.words, first, last, rule.modality, rule.name)
