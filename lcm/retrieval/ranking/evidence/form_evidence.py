"""How a turn is put: facts are long, rare-worded, full of names and in the first person; questions are not answers."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.evidence.kept_rows import Numbers
from lcm.retrieval.ranking.evidence.talk import Excerpt, Flags, Talk, with_evidence
from lcm.retrieval.ranking.evidence.text_facts import FORM

COLUMNS = ("form_length", "form_rarity", "form_names", "form_first_person", "form_question")
_MOST_SPEAKERS = 2  # of a session in which form tells an answer


@dataclass(frozen=True, slots=True)
class FormEvidence:
    """Add columns that do not depend on the query.

    They tell of a talk between two named people: they are 0 for documents that begin with no name, for what an
    assistant or a tool says is long for other reasons, and in a session where more than two people speak, for at a
    meeting short remarks answer too. Standard scores: `form_length`, of ln(1 + words); `form_rarity`, of the mean idf
    of its stems; `form_names`, of ln(1 + words that begin with a capital letter inside a sentence). 0 or 1:
    `form_first_person`, whether it speaks of the speaker; `form_question`, whether its first line ends in a question
    mark.

    Source: ours.
    """

    makes = COLUMNS

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return with_evidence(frame, batch, COLUMNS, lambda seen, row: seen.kept(FormEvidence, lambda: _forms(seen)))


def _forms(seen: Excerpt) -> list[Numbers]:
    """One array a column."""
    talk, turns = seen.talk, seen.numbers
    if not talk.speakers.authors:
        return [np.zeros(len(seen))] * len(COLUMNS)
    if FormEvidence not in talk.cache:
        talk.cache[FormEvidence] = _rarity(talk), (talk.authors >= 0) & _is_between_two(talk)
    rarity, is_talk = (one[turns] for one in talk.cache[FormEvidence])
    words, names, first_person, asks = talk.forms[turns, : FORM.index("asks") + 1].T
    scaled = [seen.standardised(one) for one in (np.log1p(words), rarity, np.log1p(names))]
    return [one * is_talk for one in (*scaled, first_person, asks)]


def _rarity(talk: Talk) -> Numbers:
    """The mean idf of the stems of each turn."""
    said = talk.said
    turns = talk.turns[said.documents]
    held = np.bincount(said.stems[talk.firsts(said.stems)], minlength=len(talk.talks.stems))
    idf = np.log1p((len(talk) - held + 0.5) / (held + 0.5))
    lengths = np.bincount(turns, minlength=len(talk))
    found: Numbers = np.bincount(turns, idf[said.stems], len(talk)) / np.maximum(lengths, 1.0)
    return found


def _is_between_two(talk: Talk) -> Flags:
    """Of each turn whether no more than two named people speak in its session."""
    is_named = talk.authors >= 0
    pairs = np.unique(np.stack([talk.sessions[is_named], talk.authors[is_named]]), axis=1)
    speakers = np.bincount(pairs[0], minlength=int(talk.sessions.max(initial=-1)) + 1)
    found: Flags = speakers[talk.sessions] <= _MOST_SPEAKERS
    return found
