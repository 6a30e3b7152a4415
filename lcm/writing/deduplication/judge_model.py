"""A language model decides what a candidate is to the documents like it.

Source: memory-lancedb-pro, smart-extractor; the prompt is ours.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, cast

from lcm.encoding import well_formed
from lcm.language_model.replies import asked
from lcm.protocols.models import LanguageModel
from lcm.protocols.writing import Judgement, Neighbour
from lcm.records.document import Action, Candidate
from lcm.writing.deduplication.nearest import score_of_cosine
from lcm.writing.new_document import shown_words

DECISIONS = ("create", "skip", "merge", "supersede", "support", "contextualize", "contradict")
TARGETING = frozenset({"merge", "supersede", "support", "contextualize", "contradict"})
"""Decisions that are about one of the documents."""
EXACT = frozenset({"supersede", "contradict"})
"""Of those the ones that are dropped where the reply names no document; the others then mean the nearest."""

_SYSTEM = resources.files("lcm.writing.deduplication").joinpath("judge_prompt.txt").read_text("utf-8")
_OTHERWISE = "deduplication creates"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """The model's decision, as far as its reply can be understood; create where it cannot.

    Incidents: `judge_no_reply`, `judge_no_decision`, `judge_no_match`.
    """

    language_model: LanguageModel

    def judge(self, candidate: Candidate, near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
        shown = _shown(candidate, near)
        found, reply, problem = asked(self.language_model, _SYSTEM, shown, "decision", otherwise=_OTHERWISE)
        if found is None:
            incidents["judge_no_reply"] += 1
            return Judgement("create", problem)
        judgement = hardened(found, near, incidents=incidents)
        return replace(judgement, audit={**judgement.audit, "reply": reply})


def hardened(reply: Mapping[str, Any], near: Sequence[Neighbour], *, incidents: Counter[str]) -> Judgement:
    """The judgement that a reply {decision, match_index, reason, context_label} means.

    A decision that is missing or unknown is create. match_index counts from 1 and must be a number among those shown;
    without one supersede and contradict become create, and the others are about the nearest.
    """
    named = reply.get("decision")
    decision = named.lower() if isinstance(named, str) else ""
    if decision not in DECISIONS:
        _log.warning("%s: %r is no decision", _OTHERWISE, named)
        incidents["judge_no_decision"] += 1
        return Judgement("create", f"{named!r} is no decision")
    label = reply.get("context_label")
    label = label if isinstance(label, str) else None
    reason = str(reply.get("reason") or "the model gave no reason")
    if decision not in TARGETING:
        return Judgement(cast(Action, decision), reason, None, label)
    index = reply.get("match_index")
    if isinstance(index, bool) or not isinstance(index, int | float) or not 1 <= index <= len(near):
        if decision in EXACT:
            incidents["judge_no_match"] += 1
            return Judgement("create", f"{decision} names no document that was shown")
        index = 1
    if index != int(index):
        incidents["judge_no_match"] += 1
        return Judgement("create", f"{decision} names document {index}, which is between two", None, label)
    return Judgement(cast(Action, decision), reason, near[int(index) - 1].document, label)


def _shown(candidate: Candidate, near: Sequence[Neighbour]) -> dict[str, Any]:
    return {
        "candidate": {"category": candidate.category, **shown_words(candidate)},
        "existing": [
            {
                "index": index,
                "category": neighbour.document.category,
                "abstract": well_formed(neighbour.document.text),
                "overview": well_formed(neighbour.document.overview),
                "score": round(score_of_cosine(neighbour.cosine), 3),
            }
            for index, neighbour in enumerate(near, start=1)
        ],
    }
