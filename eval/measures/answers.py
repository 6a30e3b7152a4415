"""Answers to a dataset's questions, from what each arm found for them or from the context assembled for them.

Of queries with reference answers, and where nothing is said 0:

- `squad_F1`, `squad_EM`: words shared with the best of the references, and all of them the same, as SQuAD 1.1 counts;
- `contained`: whether the words of a reference stand in a row in the answer: the longer it is, the more it contains;
- `answer_tokens`: how long the answer is;
- `judged_correct`: whether a language model says that it is, where `judge` is one; not where its reply is no verdict;
- `answered`: whether it says anything; where not, it abstains though something is told.

Of queries that nothing answers:

- `abstention_recall`: whether it says so. The precision, which is over the queries where it says so, stands in the
  section of the measure: two arms say so of different queries, so that it pairs with nothing.

Of queries that offer options:

- `choice_accuracy`: whether the correct option is chosen, or one in the very same words.

A query is of as many of these kinds as the dataset says; of none, it is not asked. Every arm is asked the same queries.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import polars as pl

from eval.answering import Answerer, Excerpt, Judge, within
from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import (
    QUERY_VALUES_SCHEMA,
    REPORT_TOKENS,
    Direction,
    Measure,
    MemoryReading,
    SystemReading,
)
from eval.measures.names import ANSWER_MEASURES, SYSTEM_ARM
from eval.measures.retention import Retention
from eval.measures.squad import contained, exact_match, f1
from lcm.checks import check_choice, check_range
from lcm.errors import UnansweredError
from lcm.memory.system import System
from lcm.records.query import Query

Reads = Literal["documents", "context"]

ANSWERS_SCHEMA: dict[str, pl.DataType] = {**QUERY_VALUES_SCHEMA, "answer": pl.String()}
UNANSWERED = "questions that the answerer gave no answer to"
UNJUDGED = "answers that the judge gave no verdict on"


class _Wanted(NamedTuple):
    """What a dataset says of one query."""

    references: Sequence[str]
    is_unanswerable: bool
    options: Mapping[str, str]
    """Name -> words, in the order in which they are offered."""
    correct: frozenset[str]
    """Words of the correct options."""


@dataclass(frozen=True, slots=True)
class Answers(Measure):
    """Asks an answerer each query of a dataset that says what is right, and scores what it answers."""

    subject = "answers"
    of_arms = True

    answering: Answerer
    reads: Reads = "documents"
    """`documents`: what each arm ranked, best first. `context`: what is assembled for the query; of the system."""
    budget_tokens: int = 2000
    """Of what is read; 0: nothing is, which is what an answerer knows without a memory."""
    judge: Judge | None = None
    """Of answers to queries with reference answers; None: nobody is asked."""

    def __post_init__(self) -> None:
        check_choice(self, reads=Reads)
        check_range(self, "budget_tokens", ge=0)
        if not all(callable(getattr(self.answering, name, None)) for name in ("answer", "choose")):
            raise TypeError(f"answering must have answer() and choose(), got {self.answering!r}")

    def value_names(self) -> list[str]:
        return [name for name in ANSWER_MEASURES if self.judge is not None or name != "judged_correct"]

    def direction(self, value: str) -> Direction:
        return "lower" if value == "answer_tokens" else "higher"

    @property
    def context_budgets(self) -> Sequence[int]:
        return [self.budget_tokens] if self.reads == "context" and self.budget_tokens else []

    def depends_on(self, system: System) -> list[object]:
        """How contexts are assembled, where these are read."""
        return [system.assembly] if self.reads == "context" else []

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        return bool(_wanted(dataset))

    def rows(self, reading: MemoryReading) -> pl.DataFrame:
        """Rows of `ANSWERS_SCHEMA`: the answer stands beside each of its values."""
        if self.reads == "context" and reading.arm != SYSTEM_ARM:
            return pl.DataFrame(schema=ANSWERS_SCHEMA)
        wanted = _wanted(reading.dataset)
        asked = [query for query in reading.queries if query.query_id in wanted]
        shown = self._shown(reading, asked)
        rows = [
            (query.query_id, name, value, answer)
            for query in asked
            for name, value, answer in self._values(
                query, shown.get(query.query_id, []), wanted[query.query_id], reading
            )
        ]
        return pl.DataFrame(rows, schema=ANSWERS_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]] | None:
        """Of the queries where an arm says that nothing is told, whether it is right."""
        is_right = (pl.col("measure") == "abstention_recall") & (pl.col("value") == 1)
        is_wrong = (pl.col("measure") == "answered") & (pl.col("value") == 0)
        right = is_right.cast(pl.Float64)
        said = rows.filter(is_right | is_wrong)
        return means.of_conversations(said.select("arm", measure=pl.lit("abstention_precision"), value=right)) or None

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> tuple[str, ...]:
        """Over what the means are."""
        dataset = reading.dataset
        kinds = {
            "have reference answers": sum(bool(one.references) for one in _wanted(dataset).values()),
            "are answered by nothing": sum(one.is_unanswerable for one in _wanted(dataset).values()),
            "offer options": sum(bool(one.options) for one in _wanted(dataset).values()),
        }
        counts = ", ".join(f"{n:,} {what}" for what, n in kinds.items() if n)
        if not counts:
            return (f"answers: no query of {len(dataset.queries):,} has a reference answer, options, or no answer",)
        what = "what was ranked" if self.reads == "documents" else "the context"
        asked = f"of {len(dataset.queries):,} queries {counts}"
        who = type(self.answering).__name__.lower()
        told = f"answers: {asked}; {who} read at most {self.budget_tokens:,} tokens of {what} for each"
        offered = [one for one in _wanted(dataset).values() if one.options]
        return (told, *([_without_reading(offered)] if offered else []))

    def _shown(self, reading: MemoryReading, asked: Sequence[Query]) -> dict[str, list[Excerpt]]:
        """Query id -> what the answerer is shown of it."""
        if not self.budget_tokens:
            return {}
        if self.reads == "context":
            contexts = Retention(budgets=(self.budget_tokens,)).contexts(reading)
            texts = {query.query_id: [Excerpt(item.text) for item in context.items] for query, context, _ in contexts}
        else:
            names = [query.query_id for query in asked]
            ranked = reading.ranked.filter(pl.col("query_id").is_in(names))
            texts = {
                query_id: [Excerpt(one.text, one.created_at, rank) for rank, one in enumerate(recalled, start=1)]
                for query_id, recalled in reading.memory.recalled(ranked).items()
            }
        return {query_id: within(excerpts, self.budget_tokens, REPORT_TOKENS) for query_id, excerpts in texts.items()}

    def _values(
        self, query: Query, shown: Sequence[Excerpt], wanted: _Wanted, reading: MemoryReading
    ) -> Iterator[tuple[str, float, str]]:
        """Measure, value and answer."""
        incidents = reading.memory.incidents
        if wanted.references or wanted.is_unanswerable:
            try:
                answer = self.answering.answer(query.text, shown)
            except UnansweredError:
                incidents[UNANSWERED] += 1
                answer = ""
            says_nothing = not answer.strip()
            if wanted.is_unanswerable:
                yield "abstention_recall", float(says_nothing), answer
            else:
                yield "squad_F1", f1(answer, wanted.references), answer
                yield "squad_EM", exact_match(answer, wanted.references), answer
                yield "contained", contained(answer, wanted.references), answer
                yield "answer_tokens", float(REPORT_TOKENS.count([answer])[0]), answer
                yield "answered", float(not says_nothing), answer
                if self.judge is not None and (verdict := self._verdict(query, wanted, answer, incidents)) is not None:
                    yield "judged_correct", float(verdict), answer
        if wanted.options:
            try:
                chosen = self.answering.choose(query.text, shown, wanted.options)
            except UnansweredError:
                incidents[UNANSWERED] += 1
                chosen = ""
            yield "choice_accuracy", float(wanted.options.get(chosen) in wanted.correct), chosen

    def _verdict(self, query: Query, wanted: _Wanted, answer: str, incidents: Counter[str]) -> bool | None:
        assert self.judge is not None
        try:
            return self.judge.is_correct(query.text, wanted.references, answer)
        except UnansweredError:
            incidents[UNJUDGED] += 1
            return None


def _without_reading(offered: Sequence[_Wanted]) -> str:
    """What choosing options gives to who reads nothing: a level of `choice_accuracy` says little beside it."""
    chance = sum(sum(text in one.correct for text in one.options.values()) / len(one.options) for one in offered)
    longest = sum(max(one.options.values(), key=len) in one.correct for one in offered)
    return (
        f"answers: choice_accuracy without reading anything: {chance / len(offered):.3f} by chance, "
        f"{longest / len(offered):.3f} by always choosing the longest option"
    )


def _wanted(dataset: Dataset) -> dict[str, _Wanted]:
    """Query id -> what is right of it, where the dataset says; in the order of its queries."""
    references = dataset.reference_answers()
    options: dict[str, dict[str, str]] = {}
    correct: dict[str, set[str]] = {}
    for query_id, name, text, is_correct in dataset.options.iter_rows():
        options.setdefault(query_id, {})[name] = text
        correct.setdefault(query_id, set()).update([text] if is_correct else [])
    return {
        name: _Wanted(
            references.get(name, ()),
            name in dataset.unanswerable,
            options.get(name, {}),
            frozenset(correct.get(name, ())),
        )
        for name in (query.query_id for query in dataset.queries)
        if name in references or name in dataset.unanswerable or name in options
    }
