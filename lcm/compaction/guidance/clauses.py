"""Guidance by English clauses: which rule, in which words; no model.

Ours, for what a scanner of single words gets wrong: small talk, nouns that look like verbs, what was said of the past,
and rules about third persons and things.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.guidance.cues import SentenceCues, finding
from lcm.compaction.guidance.grammar import Rule
from lcm.compaction.guidance.imperatives import command, imperative_after_condition, starts_as_imperative
from lcm.compaction.guidance.reading import GuidanceMatches, Modality, RuleMatch
from lcm.compaction.guidance.segments import HARD_BREAKS, Segment, segments
from lcm.compaction.guidance.sentences import sentences

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
