"""What a judge of answers is worth: its agreement with labels, over answers that ship with lcm.

The labelled answers are ours, few and easy. Each is a question, its references, and an answer of some kind: said
otherwise, in another form, vague, of another person, a part, both ways, no answer at all, an order to the judge.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

import polars as pl

from eval.answering import JUDGE_VERSION, Judge, agreement_of
from eval.measures.means import Means
from eval.measures.measure import Measure, SystemReading
from lcm.errors import UnansweredError

JUDGE_AGREEMENT_SCHEMA: dict[str, pl.DataType] = {
    "kind": pl.String(),
    "question": pl.String(),
    "answer": pl.String(),
    "is_correct": pl.Boolean(),
    "judged_correct": pl.Boolean(),
}
"""`is_correct` is the label, `judged_correct` the judge's word, null where it gave none."""
UNREADABLE = "labelled answers that the judge gave no verdict on"


class LabelledAnswer(NamedTuple):
    """An answer, and whether it is correct by its label."""

    kind: str
    question: str
    references: list[str]
    answer: str
    is_correct: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Measure):
    """Lets the judge say of each labelled answer whether it is correct; asked once a run."""

    subject = "system"

    judge: Judge | None
    """None: there is none to measure."""

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        said = [] if self.judge is None else list(_judged(self.judge, reading.incidents))
        return pl.DataFrame(said, schema=JUDGE_AGREEMENT_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> Mapping[str, float]:
        if rows.is_empty():
            return {}
        read = rows.drop_nulls("judged_correct").select("is_correct", "judged_correct").rows()
        told = {"prompt_version": JUDGE_VERSION, "labelled": len(rows), "judged": len(read)}
        if not read:
            return told
        equal, kappa = agreement_of(read)
        wrongly_accepted = sum(judged and not label for label, judged in read)
        wrongly_refused = sum(label and not judged for label, judged in read)
        more = {"agreement": equal, "wrongly_accepted": wrongly_accepted, "wrongly_refused": wrongly_refused}
        return told | more | ({} if kappa is None else {"kappa": kappa})

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Sequence[str]:
        found = self.section(rows, Means())
        if not found:
            return []
        asked = f"judge of answers (prompt {JUDGE_VERSION:g}): of {found['labelled']} labelled answers"
        if "agreement" not in found:
            return [f"{asked} it gave a verdict on none: judged_correct is worth nothing"]
        kappa = f"kappa {found['kappa']:.2f}" if "kappa" in found else "no kappa: one verdict for all"
        wrong = f"wrong: {found['wrongly_accepted']} accepted, {found['wrongly_refused']} refused"
        return [f"{asked} it judges {found['judged']}, {found['agreement']:.0%} as labelled ({kappa}; {wrong})"]


def labelled_answers() -> list[LabelledAnswer]:
    """Those that ship with lcm, in their order."""
    text = resources.files("eval.measures").joinpath("labelled_answers.jsonl").read_text("utf-8")
    return [LabelledAnswer(**json.loads(line)) for line in text.splitlines()]


def _judged(judge: Judge, incidents: Counter[str]) -> Iterator[tuple[str, str, str, bool, bool | None]]:
    for one in labelled_answers():
        verdict = None
        try:
            verdict = judge.is_correct(one.question, one.references, one.answer)
        except UnansweredError:
            incidents[UNREADABLE] += 1
        yield one.kind, one.question, one.answer, one.is_correct, verdict
