"""Questions made from transcripts, without anybody who asked them: drawn by a seed, with what they are made of told."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.questions.making.kind import Draft, Kind, Words
from eval.questions.making.talk import Talk, talks_of
from eval.questions.overlap import overlap
from eval.questions.question import Evidence, Question
from lcm.records.conversation import Transcript


@dataclass(frozen=True, slots=True)
class KindReport:
    """What became of one kind of questions."""

    kind: str
    wanted: int
    possible: int
    """Questions that could be asked."""
    made: int
    dropped: int
    """Questions that could not be put into words as they should."""
    overlap: float | None
    """Share of a question's content words that its evidence holds, mean over the questions."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Generated questions, kind by kind, each in the order of the talk."""

    questions: tuple[Question, ...]
    reports: tuple[KindReport, ...]


def make_questions(transcripts: Sequence[Transcript], kinds: Mapping[str, Kind], seed: int = 0) -> QuestionSet:
    """Make questions of each kind, as many as it wants or as there are.

    Args:
        transcripts: those of one workspace are asked together.
        kinds: by the name that their questions bear.
        seed: decides which of the possible questions are asked, and in which words.
    """
    talks = talks_of(transcripts)
    questions: list[Question] = []
    reports = []
    for name, kind in kinds.items():
        made, report = _of_kind(talks, name, kind, f"{seed}/{name}")
        questions += made
        reports.append(report)
    return QuestionSet(tuple(questions), tuple(reports))


def _of_kind(talks: Sequence[Talk], name: str, kind: Kind, seed: str) -> tuple[list[Question], KindReport]:
    possible = [
        (number, draft) for number, talk in enumerate(talks) for draft in _each_once(list(kind.drafts(talk, seed)))
    ]
    order = list(range(len(possible)))
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    made: dict[int, tuple[Question, float | None]] = {}
    dropped = 0
    for position in order:
        if len(made) >= kind.n:
            break
        number, draft = possible[position]
        talk = talks[number]
        text = kind.worded(draft, talk) if isinstance(kind, Words) else draft.text
        if text is None:
            dropped += 1
            continue
        shared = overlap(text, [talk.turns[place].text for place in draft.evidence])
        made[position] = _question(name, text, draft, talk), shared
    kept = [made[position] for position in sorted(made)]
    shares = [shared for _, shared in kept if shared is not None]
    mean = sum(shares) / len(shares) if shares else None
    return [question for question, _ in kept], KindReport(name, kind.n, len(possible), len(made), dropped, mean)


def _each_once(drafts: Sequence[Draft]) -> list[Draft]:
    """Without questions that are asked before in the same words, at the same instant: their answers may differ."""
    first: dict[object, Draft] = {}
    for draft in drafts:
        first.setdefault((draft.text, draft.asked_at), draft)
    return list(first.values())


def _question(name: str, text: str, draft: Draft, talk: Talk) -> Question:
    evidence = [talk.turns[place] for place in draft.evidence]
    told = "\x00".join((talk.workspace_id, talk.turns[draft.place].message.message_id, text))
    return Question(
        question_id=f"{name}-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
        question=text,
        evidence=(Evidence(message_ids=tuple(turn.message.message_id for turn in evidence)),),
        asked_at=draft.asked_at,
        category=name,
        generated=name,
        conversations=tuple(dict.fromkeys(turn.conversation_id for turn in evidence)),
    )
