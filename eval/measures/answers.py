"""Answers to a dataset's questions held against references, word by word and by a judge; and what that judge is worth.

`squad_F1` and `squad_EM` are as SQuAD's own script of version 1.1 counts words: lower case, without ASCII punctuation
and the articles a, an, the; of several references the best counts. Two things differ. A CJK character is a word of its
own, and CJK punctuation goes, for without blanks between words F1 would be exact match (so does MLQA's script). Where
an answer or a reference has no words left, they are equal or not, as version 2.0 has it: 1.1 calls F1 0 where "the"
answers "the".

Source: Rajpurkar et al. 2016 (arXiv 1606.05250), `evaluate-v1.1.py`.
"""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal, NamedTuple, TypeVar

import polars as pl

from eval.answering import JUDGE_VERSION, Answerer, Excerpt, Judge, agreement_of, within
from eval.dataset.dataset import Dataset
from eval.measures.means import Entry, Means
from eval.measures.measure import QUERY_VALUES_SCHEMA, REPORT_TOKENS, Measure, MemoryReading, SystemReading
from eval.measures.names import ANSWER_MEASURES, SYSTEM_ARM, Direction
from eval.measures.retention import Retention
from lcm.checks import check_choice, check_range
from lcm.errors import UnansweredError
from lcm.memory.system import System
from lcm.records.query import Query

Reads = Literal["documents", "context"]
_Said = TypeVar("_Said")

ANSWERS_SCHEMA: dict[str, pl.DataType] = {**QUERY_VALUES_SCHEMA, "answer": pl.String()}
JUDGE_AGREEMENT_SCHEMA: dict[str, pl.DataType] = {
    "kind": pl.String(),
    "question": pl.String(),
    "answer": pl.String(),
    "is_correct": pl.Boolean(),
    "judged_correct": pl.Boolean(),
}
"""`is_correct` is the label, `judged_correct` the judge's word, null where it gave none."""
UNANSWERED = "questions that the answerer gave no answer to"
UNJUDGED = "answers that the judge gave no verdict on"
UNREADABLE = "labelled answers that the judge gave no verdict on"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = {ord(mark): None for mark in string.punctuation}
_CJK_PUNCTUATION = re.compile("[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")
_CJK = re.compile("([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff])")


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
    """Answers to a dataset's questions, from what each arm found for them or from the context assembled for them.

    Of queries with reference answers, and where nothing is said 0:

    - `squad_F1`, `squad_EM`: words shared with the best of the references, and all of them the same;
    - `contained`: whether the words of a reference stand in a row in the answer, the likelier the longer that is;
    - `answer_tokens`: how long the answer is;
    - `judged_correct`: whether a language model says that it is, where `judge` is one; not where its reply is no
      verdict;
    - `answered`: whether it says anything; where not, it abstains though something is told.

    Of queries that nothing answers:

    - `abstention_recall`: whether it says so. The precision, which is over the queries where it says so, stands in the
      section of the measure: two arms say so of different queries, so that it pairs with nothing.

    Of queries that offer options:

    - `choice_accuracy`: whether the correct option is chosen, or one in the very same words.

    A query is of as many of these kinds as the dataset says; of none, it is not asked. Every arm is asked the same
    queries.
    """

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
        shown, incidents = self._shown(reading, asked), reading.memory.incidents
        rows = [
            (query.query_id, *row)
            for query in asked
            for row in self._values(query, shown.get(query.query_id, []), wanted[query.query_id], incidents)
        ]
        return pl.DataFrame(rows, schema=ANSWERS_SCHEMA, orient="row")

    def section(self, rows: pl.DataFrame, means: Means) -> dict[str, dict[str, Entry]] | None:
        """Of the queries where an arm says that nothing is told, whether it is right."""
        is_right = (pl.col("measure") == "abstention_recall") & (pl.col("value") == 1)
        is_wrong = (pl.col("measure") == "answered") & (pl.col("value") == 0)
        right, name = is_right.cast(pl.Float64), pl.lit("abstention_precision")
        return means.of_conversations(rows.filter(is_right | is_wrong).select("arm", measure=name, value=right)) or None

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Iterator[str]:
        """Over what the means are."""
        wanted, queries = _wanted(reading.dataset).values(), len(reading.dataset.queries)
        offered = [one for one in wanted if one.options]
        kinds = {
            "have reference answers": sum(bool(one.references) for one in wanted),
            "are answered by nothing": sum(one.is_unanswerable for one in wanted),
            "offer options": len(offered),
        }
        if not wanted:
            yield f"answers: no query of {queries:,} has a reference answer, options, or no answer"
            return
        counts = ", ".join(f"{n:,} {what}" for what, n in kinds.items() if n)
        what = "what was ranked" if self.reads == "documents" else "the context"
        who = type(self.answering).__name__.lower()
        read = f"{who} read at most {self.budget_tokens:,} tokens of {what} for each"
        yield f"answers: of {queries:,} queries {counts}; {read}"
        if offered:  # a level of choice_accuracy says little but beside what a choice gives to who reads nothing
            shares = [sum(text in one.correct for text in one.options.values()) / len(one.options) for one in offered]
            longest = sum(max(one.options.values(), key=len) in one.correct for one in offered)
            yield (
                f"answers: choice_accuracy without reading anything: {sum(shares) / len(offered):.3f} by chance, "
                f"{longest / len(offered):.3f} by always choosing the longest option"
            )

    def _shown(self, reading: MemoryReading, asked: Sequence[Query]) -> dict[str, list[Excerpt]]:
        """Query id -> what the answerer is shown of it."""
        if not self.budget_tokens:
            return {}
        if self.reads == "context":
            contexts = Retention(budgets=(self.budget_tokens,)).contexts(reading)
            texts = {query.query_id: [Excerpt(one.text) for one in held.context.items] for query, _, held in contexts}
        else:
            ranked = reading.ranked.filter(pl.col("query_id").is_in([query.query_id for query in asked]))
            texts = {
                query_id: [Excerpt(one.text, one.created_at, rank) for rank, one in enumerate(recalled, start=1)]
                for query_id, recalled in reading.memory.recalled(ranked).items()
            }
        return {query_id: within(excerpts, self.budget_tokens, REPORT_TOKENS) for query_id, excerpts in texts.items()}

    def _values(
        self, query: Query, shown: Sequence[Excerpt], wanted: _Wanted, incidents: Counter[str]
    ) -> Iterator[tuple[str, float, str]]:
        """Measure, value and answer."""
        references = wanted.references
        if references or wanted.is_unanswerable:
            answer = _said(lambda: self.answering.answer(query.text, shown), incidents, UNANSWERED) or ""
            says_nothing = not answer.strip()
            if wanted.is_unanswerable:
                yield "abstention_recall", float(says_nothing), answer
            else:
                yield "squad_F1", f1(answer, references), answer
                yield "squad_EM", exact_match(answer, references), answer
                yield "contained", contained(answer, references), answer
                yield "answer_tokens", float(REPORT_TOKENS.count([answer])[0]), answer
                yield "answered", float(not says_nothing), answer
                if (judge := self.judge) is not None:
                    verdict = _said(lambda: judge.is_correct(query.text, references, answer), incidents, UNJUDGED)
                    if verdict is not None:
                        yield "judged_correct", float(verdict), answer
        if wanted.options:
            choose = self.answering.choose
            chosen = _said(lambda: choose(query.text, shown, wanted.options), incidents, UNANSWERED) or ""
            yield "choice_accuracy", float(wanted.options.get(chosen) in wanted.correct), chosen


def _said(ask: Callable[[], _Said], incidents: Counter[str], otherwise: str) -> _Said | None:
    """What somebody says; None where that is nothing this time, which is counted."""
    try:
        return ask()
    except UnansweredError:
        incidents[otherwise] += 1
        return None


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


def words(text: str) -> list[str]:
    """The words of an answer that count, in order."""
    plain = _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION))
    return _CJK.sub(r" \1 ", _CJK_PUNCTUATION.sub(" ", plain)).split()


def exact_match(answer: str, references: Sequence[str]) -> float:
    return _best(answer, references, lambda said, right: float(said == right))


def f1(answer: str, references: Sequence[str]) -> float:
    """The harmonic mean of precision and recall of the words, in [0, 1]."""
    return _best(answer, references, _f1)


def contained(answer: str, references: Sequence[str]) -> float:
    """Whether the words of a reference stand in a row in the answer. Not SQuAD's: a long answer gains by it."""
    return _best(answer, references, lambda said, right: float(_stands_in(right, said)))


def _best(answer: str, references: Sequence[str], score: Callable[[list[str], list[str]], float]) -> float:
    if isinstance(references, str) or not references:
        raise ValueError(f"an answer is held against a list of at least one reference, got {references!r:.80}")
    said = words(answer)
    return max(score(said, words(reference)) for reference in references)


def _f1(said: list[str], right: list[str]) -> float:
    if not said or not right:
        return float(said == right)
    return 2 * (Counter(said) & Counter(right)).total() / (len(said) + len(right))


def _stands_in(right: list[str], said: list[str]) -> bool:
    if not right:
        return not said
    return any(said[at : at + len(right)] == right for at in range(len(said) - len(right) + 1))


class LabelledAnswer(NamedTuple):
    """An answer, and whether it is correct by its label."""

    kind: str
    question: str
    references: list[str]
    answer: str
    is_correct: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement(Measure):
    """What a judge of answers is worth: its agreement with labels, over answers that ship with lcm.

    These are ours, few and easy. Each is a question, its references, and an answer of some kind: said otherwise, in
    another form, vague, of another person, a part, both ways, no answer at all, an order to the judge.
    """

    subject = "system"

    judge: Judge | None
    """None: there is none to measure."""

    def rows(self, reading: SystemReading) -> pl.DataFrame:
        """Rows of `JUDGE_AGREEMENT_SCHEMA`."""
        if (judge := self.judge) is None:
            return pl.DataFrame(schema=JUDGE_AGREEMENT_SCHEMA)

        def verdict(one: LabelledAnswer) -> bool | None:
            asked = one.question, one.references, one.answer
            return _said(lambda: judge.is_correct(*asked), reading.incidents, UNREADABLE)

        rows = [(one.kind, one.question, one.answer, one.is_correct, verdict(one)) for one in labelled_answers()]
        return pl.DataFrame(rows, schema=JUDGE_AGREEMENT_SCHEMA, orient="row")

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
