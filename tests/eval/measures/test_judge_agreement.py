"""What a judge of answers is worth: over the labelled answers, with judges whose words are known."""

from collections import Counter
from dataclasses import dataclass

import polars as pl

from eval.answering import Judge
from eval.measures.answers import JUDGE_AGREEMENT_SCHEMA, UNREADABLE, JudgeAgreement, labelled_answers
from eval.measures.means import Means
from eval.measures.measure import SystemReading
from lcm.memory.system import System
from tests.eval.measures.test_answers import dataset
from tests.support.language_models import Replying
from tests.support.workspaces import system


def rows(judge: Judge | None, incidents: Counter[str] | None = None) -> pl.DataFrame:
    memory: System = system()
    found = Counter[str]() if incidents is None else incidents
    return JudgeAgreement(judge).rows(SystemReading(memory, dataset(), found))


@dataclass(frozen=True, slots=True)
class Knowing(Judge):
    """Knows the labels, but for those of one kind."""

    but: str = ""

    def is_correct(self, question: str, references: object, answer: str) -> bool:
        (one,) = (each for each in labelled_answers() if (each.question, each.answer) == (question, answer))
        return one.is_correct is (one.kind != self.but)


def test_labelled_answers_are_of_both_labels_and_none_stands_twice() -> None:
    labelled = labelled_answers()
    correct = sum(one.is_correct for one in labelled)
    assert len(labelled) >= 50
    assert 0.4 < correct / len(labelled) < 0.6
    assert len({(one.question, one.answer) for one in labelled}) == len(labelled)
    assert all(one.references and one.answer and one.question for one in labelled)


def test_a_judge_that_knows_the_labels_agrees_and_one_that_accepts_all_does_not() -> None:
    measure = JudgeAgreement(None)
    knowing = measure.section(rows(Knowing(Replying(""))), Means())
    assert (knowing["agreement"], knowing["kappa"]) == (1.0, 1.0)
    labelled = labelled_answers()
    vague = [one for one in labelled if one.kind == "vague"]
    lenient = measure.section(rows(Knowing(Replying(""), but="vague")), Means())
    assert lenient["wrongly_accepted"] == len(vague)
    assert lenient["agreement"] == 1 - len(vague) / len(labelled)
    found = rows(Judge(Replying('{"correct": true}')))
    accepting = measure.section(found, Means())
    assert (accepting["kappa"], accepting["wrongly_refused"]) == (0.0, 0)
    n, wrong = len(labelled), sum(not one.is_correct for one in labelled)
    (note,) = measure.notes(found, SystemReading(system(), dataset()))
    assert note == (
        f"judge of answers (prompt 1): of {n} labelled answers it judges {n}, {(n - wrong) / n:.0%} as labelled "
        f"(kappa 0.00; wrong: {wrong} accepted, 0 refused)"
    )


def test_replies_that_are_no_verdict_are_counted_and_told() -> None:
    incidents = Counter[str]()
    found = rows(Judge(Replying("perhaps")), incidents)
    assert incidents[UNREADABLE] == len(labelled_answers())
    assert found["judged_correct"].null_count() == len(found)
    (note,) = JudgeAgreement(None).notes(found, SystemReading(system(), dataset()))
    assert note == (
        f"judge of answers (prompt 1): of {len(found)} labelled answers it gave a verdict on none: judged_correct is "
        "worth nothing"
    )


def test_without_a_judge_there_is_nothing() -> None:
    found = rows(None)
    assert found.is_empty()
    assert found.schema == JUDGE_AGREEMENT_SCHEMA
    assert JudgeAgreement(None).section(found, Means()) == {}
    assert JudgeAgreement(None).notes(found, SystemReading(system(), dataset())) == []
