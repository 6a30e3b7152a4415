"""What sentences state that a reader cannot do without: numbers, dates, outcomes, what became of files …"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lcm.compaction.facts.done import BEFORE
from lcm.compaction.facts.finding import statements_in
from lcm.compaction.facts.statement import Kind, Statement
from lcm.compaction.summarizer.kinds import TOOL
from lcm.compaction.summarizer.passages import Sentence

_TOLD_OTHERWISE: tuple[Kind, ...] = ("name", "question", "rule")
"""A footer names names; what rules and questions are worth is in `kinds.IMPORTANCE`."""

_LONGEST_BEFORE = 80  # characters: a longer one would be a sentence of its own
_LABEL = re.compile(r"^[\w.-]+[\"'`*]*\s*(?:=|:|\bis(?: now)?|\bwas)\s*(?=[\"'`*\d+-])")

Subject = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """Which sentence states which fact; of a fact with several values the last one alone counts."""

    rows: npt.NDArray[np.int64]
    """Sentence `rows[i]` states fact `ids[i]`, once."""
    ids: npt.NDArray[np.int64]
    """From 0 without gaps."""
    is_known: npt.NDArray[np.bool_]
    """Of each fact: whether the summary before states it with this value."""
    is_changed: npt.NDArray[np.bool_]
    """Of each fact: whether the summary before states it with another value."""


def stated_facts(sentences: Sequence[Sentence], before: Sequence[Sentence] = ()) -> StatedFacts:
    """Find the facts of sentences.

    Args:
        sentences: in order.
        before: those of the summary before.
    """
    found = [_statements(sentence) for sentence in sentences]
    last = _last_values(found)
    places = {subject: place for place, subject in enumerate(last)}
    pairs = [
        (row, place)
        for row, statements in enumerate(found)
        for place in sorted({places[one.kind, one.key] for one in statements if last[one.kind, one.key] == one.value})
    ]
    known = _last_values(map(_statements, before))
    rows, ids = np.array(pairs, np.int64).reshape(-1, 2).T
    was = [known.get(subject) for subject in last]
    is_known = [old == value for old, value in zip(was, last.values(), strict=True)]
    is_changed = [old not in (None, value) for old, value in zip(was, last.values(), strict=True)]
    return StatedFacts(rows, ids, np.array(is_known, bool), np.array(is_changed, bool))


def with_changes(sentences: Sequence[Sentence], before: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The sentences, with what the summary before said instead behind those that say otherwise.

    Of what is labelled, preferred or decided: `port: 9090 (before: 8080)`. The label of another number is a guess.
    """
    said = {(one.kind, one.key): one for each in before for one in _statements(each) if _is_labelled(one)}
    return tuple(_with_change(sentence, said) for sentence in sentences) if said else tuple(sentences)


def _with_change(sentence: Sentence, said: Mapping[Subject, Statement]) -> Sentence:
    if BEFORE in sentence.text:
        return sentence
    own = {(one.kind, one.key): one for one in _statements(sentence) if _is_labelled(one)}
    changed = (said[key].said for key, one in own.items() if key in said and said[key].value != one.value)
    was = next((_value(words) for words in changed if len(words) <= _LONGEST_BEFORE), "")
    if not was:
        return sentence
    kind = "change" if sentence.kind == "plain" else sentence.kind
    return replace(sentence, text=f"{sentence.text}{BEFORE}{was})", kind=kind)


def _is_labelled(one: Statement) -> bool:
    is_number = one.kind == "number" and one.key.endswith(" number")
    return bool(one.value) and (is_number or one.kind in ("identifier", "preference", "decision"))


def _value(words: str) -> str:
    """Of `port: 8080` the number."""
    return _LABEL.sub("", words).strip()


def _last_values(found: Iterable[Sequence[Statement]]) -> dict[Subject, str]:
    """Each subject with the value that was stated last."""
    return {(one.kind, one.key): one.value for statements in found for one in statements}


def _statements(sentence: Sentence) -> Sequence[Statement]:
    found = statements_in(sentence.label + sentence.text if sentence.speaker == TOOL else sentence.text)
    return [one for one in found if one.kind not in _TOLD_OTHERWISE]
