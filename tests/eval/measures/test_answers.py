"""Answers to a dataset's questions: who is asked what, from what, and over what the means are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
import pytest

from eval.answering import Answerer, Excerpt, Extractive, Judge
from eval.arms import Oracle
from eval.dataset.dataset import ANSWERS_SCHEMA, OPTIONS_SCHEMA, QRELS_SCHEMA, Dataset
from eval.experiment.outcome import Outcome
from eval.measures.answers import UNANSWERED, UNJUDGED, Answers
from eval.measures.measure import REPORT_TOKENS, SystemReading
from lcm.errors import DatasetError, ModelError, UnansweredError
from lcm.records.query import Query
from tests.eval.tiny import tiny
from tests.support import experiments
from tests.support.language_models import Replying
from tests.support.workspaces import minute, system, transcript

ASKED = {
    "where": "Where did the goats escape on?",
    "tea": "What does Ada prefer, tea or coffee?",
    "never": "Which submarine did Ada sink?",
    "pick": "Ada, what would you drink?",
    "other": "What is nobody told?",
}
OPTIONS = [
    ("pick", "a", "You prefer beer", False),
    ("pick", "b", "You prefer green tea", True),
    ("pick", "c", "You prefer green tea", False),  # in the very same words
]


def dataset() -> Dataset:
    """Two questions with answers, one that nothing answers, one with options, one of which nothing is known."""
    texts = [("where", "Thursday evening"), ("tea", "green tea"), ("tea", "tea")]
    return tiny(
        [transcript()],
        (Query(name, text, minute(99), category=name[:1]) for name, text in ASKED.items()),
        [("where", "talk:7"), ("tea", "talk:5")],
        answers=pl.DataFrame(texts, schema=ANSWERS_SCHEMA, orient="row"),
        unanswerable=frozenset({"never"}),
        options=pl.DataFrame(OPTIONS, schema=OPTIONS_SCHEMA, orient="row"),
    )


@dataclass(frozen=True)
class Saying:
    """Says what it is told to, and keeps what it was shown."""

    says: Mapping[str, str | Exception] = field(default_factory=dict)
    shown: list[tuple[str, Sequence[Excerpt]]] = field(default_factory=list)

    def answer(self, question: str, excerpts: Sequence[Excerpt]) -> str:
        self.shown.append((question, excerpts))
        said = self.says.get(question, "")
        if isinstance(said, Exception):
            raise said
        return said

    def choose(self, question: str, excerpts: Sequence[Excerpt], options: Mapping[str, str]) -> str:
        return self.answer(question, excerpts)


def found(answerer: Answerer, given: Dataset | None = None, **settings: object) -> Outcome:
    measure = Answers(answerer, **settings)  # type: ignore[arg-type]
    return experiments.outcome(given or dataset(), system(), {"answers": measure}, {"oracle": Oracle()})


def values(outcome: Outcome, arm: str = "system") -> dict[tuple[str, str], float]:
    rows = outcome.values.filter(arm=arm).select("query_id", "measure", "value")
    return {(query, measure): value for query, measure, value in rows.iter_rows()}


def test_each_query_is_scored_by_what_the_dataset_says_of_it() -> None:
    said = {ASKED["where"]: "on Thursday", ASKED["pick"]: "b", ASKED["never"]: "The Nautilus"}
    outcome = found(Saying(said))
    assert values(outcome) == {
        ("where", "squad_F1"): 1 / 2,  # "on Thursday" and "Thursday evening" share one of two words
        ("where", "squad_EM"): 0.0,
        ("where", "contained"): 0.0,
        ("where", "answer_tokens"): 3.0,
        ("where", "answered"): 1.0,
        ("tea", "squad_F1"): 0.0,
        ("tea", "squad_EM"): 0.0,
        ("tea", "contained"): 0.0,
        ("tea", "answer_tokens"): 0.0,
        ("tea", "answered"): 0.0,
        ("never", "abstention_recall"): 0.0,
        ("pick", "choice_accuracy"): 1.0,
    }
    kept = outcome.frames["answers"]
    assert kept.columns == ["arm", "query_id", "answer"]
    assert dict(kept.filter(arm="oracle").drop("arm").iter_rows()) == {
        name: said.get(ASKED[name], "") for name in ("where", "tea", "never", "pick")
    }
    assert len(kept) == 2 * 4


@pytest.mark.parametrize(("chosen", "value"), [("a", 0.0), ("b", 1.0), ("c", 1.0), ("", 0.0), ("d", 0.0)])
def test_an_option_in_the_words_of_the_correct_one_is_correct(chosen: str, value: float) -> None:
    assert values(found(Saying({ASKED["pick"]: chosen})))["pick", "choice_accuracy"] == value


def test_precision_is_over_the_queries_where_an_arm_says_nothing() -> None:
    outcome = found(Saying({ASKED["where"]: "Thursday"}))  # it abstains from tea, wrongly, and from never, rightly
    entry = outcome.sections["answers"]["system"]["abstention_precision"]
    assert (entry["value"], entry["n"]) == (1 / 2, 2)
    assert values(outcome)["never", "abstention_recall"] == 1.0
    assert "answers" not in found(Saying(dict.fromkeys(ASKED.values(), "b"))).sections  # it never abstains


def test_every_arm_is_asked_the_same_queries_from_what_it_ranked_itself() -> None:
    answerer = Saying()
    outcome = found(answerer)
    assert values(outcome).keys() == values(outcome, "oracle").keys()
    of_tea = [shown for question, shown in answerer.shown if question == ASKED["tea"]]
    assert [one.text.partition(": ")[2] for one in of_tea[1]] == ["Ada prefers green tea, never coffee"]  # the oracle
    assert len(of_tea[0]) > 1
    assert of_tea[1][0].said_at == minute(5)


def test_without_a_budget_nothing_is_read() -> None:
    answerer = Saying()
    found(answerer, budget_tokens=0)
    assert all(not shown for _, shown in answerer.shown)
    assert values(found(Extractive(), budget_tokens=0))["tea", "answered"] == 0.0


def test_a_context_is_read_of_the_system_alone_within_the_budget() -> None:
    answerer = Saying()
    outcome = found(answerer, reads="context", budget_tokens=40)
    assert values(outcome)
    assert values(outcome, "oracle") == {}
    costs = [sum(REPORT_TOKENS.count([one.text for one in shown])) for _, shown in answerer.shown]
    assert 0 < max(costs) <= 40


def test_what_a_model_leaves_unanswered_counts_as_nothing_said_and_is_counted() -> None:
    outcome = found(Saying({ASKED["where"]: UnansweredError("no words"), ASKED["pick"]: UnansweredError("no words")}))
    assert outcome.incidents[UNANSWERED] == 4  # two queries, two arms
    assert values(outcome)["where", "answered"] == 0.0
    assert values(outcome)["pick", "choice_accuracy"] == 0.0
    with pytest.raises(ModelError, match="no key"):  # a model that cannot be asked at all
        found(Saying({ASKED["where"]: ModelError("no key")}))


def test_a_dataset_without_judgements_is_measured_by_what_it_offers() -> None:
    """The oracle knows nothing of it, which says nothing of an answerer."""
    offered = replace(dataset(), qrels=pl.DataFrame(schema=QRELS_SCHEMA))
    outcome = found(Extractive(), offered)
    assert values(outcome)["pick", "choice_accuracy"] == 1.0
    assert values(outcome, "oracle") == {}
    nothing = replace(
        offered, answers=offered.answers.clear(), unanswerable=frozenset(), options=offered.options.clear()
    )
    with pytest.raises(DatasetError, match="no judgements"):
        found(Extractive(), nothing)


def test_notes_give_the_denominators_and_fewer_tokens_are_better() -> None:
    measure = Answers(Extractive())
    note, without_reading = measure.notes(pl.DataFrame(), SystemReading(system(), dataset()))
    told = "answers: choice_accuracy without reading anything: 0.667 by chance, 1.000 by always choosing the longest"
    assert without_reading == f"{told} option"
    assert note == (
        "answers: of 5 queries 2 have reference answers, 1 are answered by nothing, 1 offer options; extractive read "
        "at most 2,000 tokens of what was ranked for each"
    )
    assert [name for name in measure.value_names() if measure.direction(name) == "lower"] == ["answer_tokens"]


def test_what_is_no_answerer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"answering must have answer\(\) and choose\(\)"):
        Answers("llm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reads must be one of"):
        Answers(Extractive(), reads="everything")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="budget_tokens"):
        Answers(Extractive(), budget_tokens=-1)


def test_a_judge_stands_beside_the_scores_and_what_it_cannot_judge_is_told() -> None:
    said = {ASKED["where"]: "Thursday"}
    judged = found(Saying(said), judge=Judge(Replying('{"correct": true}')))
    assert values(judged)["where", "judged_correct"] == 1.0
    assert values(judged)["tea", "judged_correct"] == 0.0  # nothing was said
    assert values(judged)["where", "squad_F1"] == 2 / 3
    unread = found(Saying(said), judge=Judge(Replying("perhaps")))
    assert ("where", "judged_correct") not in values(unread)
    assert unread.incidents[UNJUDGED] == 2  # of two arms
