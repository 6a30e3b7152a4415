"""What documents cover: which messages stand in a ranking and where, how far one has to read to have the words of the
evidence, and what the best order of the documents would reach.

Words are compared without regard to case, white space and kinds of quotation marks, as quotations are; a quotation that
does not stand so is looked for without any marks between words, for a document tells JSON as a person reads it.

The ceiling of a measure is the value of the best order of the documents, which no other order of them passes. A
measure of places is best where all that is relevant comes at once, most relevant first. How many messages k documents
cover, and what is read within a budget of tokens, has a bound from above, which is reached where documents do not
overlap.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain, repeat
from typing import NamedTuple

import numpy as np
import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.measure import EVIDENCE_TEXT_SCHEMA, QUERY_VALUES_SCHEMA, REPORT_TOKENS
from eval.questions.quotation import end_of, folded
from lcm.records.conversation import Message
from lcm.records.query import Query
from lcm.retrieval.frames import KeptBeside
from lcm.transcript.passages import passages

_STRETCH, _WORD, _ESCAPE = re.compile(r"\S+"), re.compile(r"\w+"), re.compile(r'\\[nrtbf"\\/]')
_RUN = 48
"""Letters of a message that are looked for together, where a document does not hold all of it."""
_ROUNDING = 1e-9
_UNITS_SCHEMA = {"query_id": pl.String, "unit": pl.String, "rank": pl.Int64, "position": pl.Int64}
_Part = tuple[int, int]
"""Evidence, and which part of it."""


def with_near_duplicates(run: pl.DataFrame) -> pl.DataFrame:
    """The rows of a run, behind each a row of the same rank for each document that its document stands for, where the
    run says so."""
    if "stands_for" not in run.columns:
        return run
    if not (run["stands_for"].list.len() > 0).any():  # nothing stands for another, as under most rankings
        return run.drop("stands_for")
    shown = pl.concat_list("document_id", pl.col("stands_for").fill_null([]))
    return run.with_columns(document_id=shown).drop("stands_for").explode("document_id")


def ranked_messages(run: pl.DataFrame, documents: pl.DataFrame) -> pl.DataFrame:
    """Rows arm, workspace_id, query_id, message_id, rank (1-based), score: each message where it is first covered.

    Args:
        run: as in `Outcome`; best first within an arm and a query once sorted by rank.
        documents: workspace_id, document_id, source_message_ids.
    """
    covers = documents.select("workspace_id", "document_id", message_id="source_message_ids").explode("message_id")
    return (
        with_near_duplicates(run.sort("rank", maintain_order=True))
        .join(covers, on=["workspace_id", "document_id"], maintain_order="left_right")
        .filter(pl.col("message_id").is_not_null())
        .unique(["arm", "query_id", "message_id"], keep="first", maintain_order=True)
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("arm", "query_id"))
        .select("arm", "workspace_id", "query_id", "message_id", "rank", "score")
    )


def covered_by(shown: pl.DataFrame, documents: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """The rows of documents that are shown, one for each message that they stand for, with that and its session."""
    covers = (
        documents.select("workspace_id", "document_id", message_id="source_message_ids")
        .join(shown, on=["workspace_id", "document_id"], how="semi", maintain_order="left")
        .explode("message_id")
        .join(sessions, on=["workspace_id", "message_id"], how="left", maintain_order="left")
    )
    return shown.join(covers, on=["workspace_id", "document_id"], how="left", maintain_order="left_right").rename(
        {"message_id": "message", "session_id": "session"}
    )


def units_of(covered: pl.DataFrame, level: str, judged: pl.DataFrame) -> pl.DataFrame:
    """A ranking of documents as one of messages or sessions: rows query_id, unit, rank, position (1-based).

    A unit stands where the first document that covers it stands, at that document's rank.
    """
    return (
        covered.select("query_id", "rank", unit=level)
        .filter(pl.col("unit").is_not_null())
        .join(judged, on="query_id", how="semi", maintain_order="left")
        .unique(["query_id", "unit"], keep="first", maintain_order=True)
        .with_columns(position=pl.int_range(1, pl.len() + 1).over("query_id"))
    )


def placed_by_document(covered: pl.DataFrame, judgements: pl.DataFrame) -> pl.DataFrame:
    """The relevant messages of a ranking, each where the first document that covers it stands, or at the next place
    where that is taken: rows query_id, unit, rank, position (1-based).

    Args:
        judgements: query_id, unit, relevance above 0.
    """
    nth = pl.int_range(1, pl.len() + 1)
    return (
        covered.select("query_id", "rank", unit="message")
        .join(judgements, on=["query_id", "unit"], maintain_order="left")
        .unique(["query_id", "unit"], keep="first", maintain_order=True)
        .sort("rank", pl.col("relevance"), descending=[False, True], maintain_order=True)
        .with_columns(position=(nth + (pl.col("rank") - nth).cum_max()).over("query_id"))
        .drop("relevance")
    )


@dataclass(slots=True)
class ShownText:
    """A text as a reader is shown it: how many tokens of it must be read, from its start, to have read some words."""

    text: str
    folded: str = field(init=False)
    words: str | None = field(init=False, default=None)
    """Without marks between them, once they are asked for."""

    def __post_init__(self) -> None:
        self.folded = folded(self.text)

    def tokens(self, end: int | None = None) -> int:
        """Of the text up to the end of its first so many folded letters; None = of all of it."""
        is_whole = end is None or end == len(self.folded)
        return _tokens(self.text if is_whole else self.text[: _unfolded(self.text, _STRETCH, end or 0)])

    def tokens_to(self, quotation: str) -> int | None:
        """Of the text up to the end of a quotation; None = it does not stand there."""
        as_it_stands, words = _sought(quotation)
        end = end_of(as_it_stands, self.folded)
        if end is not None:
            return self.tokens(end)
        if self.words is None:
            self.words = _words(self.text)
        end = end_of(words, self.words) if words else None
        return None if end is None else _tokens(self.text[: _unfolded(_unescaped(self.text), _WORD, end)])


@lru_cache(maxsize=1)
def _sought(quotation: str) -> tuple[str, str]:
    """It is looked for in one text after the other."""
    return folded(quotation), _words(quotation)


def _words(text: str) -> str:
    return folded(" ".join(_WORD.findall(_unescaped(unicodedata.normalize("NFC", text)))))


def _tokens(text: str) -> int:
    return REPORT_TOKENS.count([text])[0]


def _unescaped(text: str) -> str:
    """The text with blanks for the escapes of JSON, as long as it was."""
    return _ESCAPE.sub("  ", text)


def _unfolded(text: str, pattern: re.Pattern[str], end: int) -> int:
    """How many letters of a text its first `end` are made of, once what the pattern finds is folded, a blank apart."""
    length = 0
    for found in pattern.finditer(text):
        stretch = found[0]
        here = len(folded(stretch))
        if length + here >= end:
            lengths = range(1, len(stretch) + 1)
            return found.start() + 1 + bisect_left(lengths, end - length, key=lambda n: len(folded(stretch[:n])))
        length += here + 1
    return len(text)


def evidence_text(documents: pl.DataFrame, queries: Sequence[Query], dataset: Dataset) -> pl.DataFrame:
    """Rows of `EVIDENCE_TEXT_SCHEMA` for what is judged relevant to queries of one workspace.

    Args:
        documents: document_id, text, source_message_ids, kind: of every document of the workspace.
    """
    asked = pl.col("query_id").is_in([query.query_id for query in queries])
    judgements = [frame for frame in (dataset.qrels, dataset.repaired_qrels) if frame is not None]
    judged = pl.concat([frame.filter(asked, pl.col("relevance") > 0).select("message_id") for frame in judgements])
    quotations = dataset.quotations.filter(asked)["quotation"].unique().sort()
    workspaces = {query.workspace_id for query in queries}
    messages = {
        message.message_id: message
        for transcript in dataset.transcripts
        if transcript.workspace_id in workspaces
        for message in transcript.messages
    }
    by_message = (
        documents.select("document_id", message_id="source_message_ids")
        .explode("message_id")
        .filter(pl.col("message_id").is_in(list(messages)))
        .join(judged.unique(), on="message_id", how="semi", maintain_order="left")
        .group_by("message_id", maintain_order=True)
        .agg("document_id")
    )
    if quotations.is_empty():  # else any document may stand for a near duplicate that is left out in its favour
        documents = documents.join(by_message.explode("document_id"), on="document_id", how="semi")
    found = documents.select("document_id", "text", "source_message_ids", "kind")
    shown = {
        document_id: _Shown(
            document_id,
            ShownText(text),
            [messages[one] for one in sources if one in messages],
            kind == "summary",
        )
        for document_id, text, sources, kind in found.iter_rows()
    }
    rows = [
        (message_id, "", *row)
        for message_id, ids in by_message.iter_rows()
        for row in _of_message(messages[message_id], [shown[one] for one in ids])
    ]
    rows += [
        ("", quotation, 0, 1, one.document_id, tokens)
        for quotation in quotations
        for one in shown.values()
        if (tokens := one.text.tokens_to(quotation)) is not None
    ]
    return pl.DataFrame(rows, schema=EVIDENCE_TEXT_SCHEMA, orient="row")


@dataclass(frozen=True, slots=True)
class _Shown:
    """A document, and what it shows."""

    document_id: str
    text: ShownText
    sources: Sequence[Message]
    is_summary: bool

    def ends(self, message: Message) -> dict[tuple[int, int], int]:
        """(Passage, run of letters) of a message that stand there -> where they end, in folded letters; of a passage
        that stands there whole, where that ends. Empty of a summary, whatever it repeats."""
        found: dict[tuple[int, int], int] = {}
        for number, passage in enumerate([] if self.is_summary else passages(message)):
            words = folded(passage.text)
            end = end_of(words, self.text.folded) if words else None
            last = max(len(words) // _RUN, 1) - 1
            for place in range(last + 1):
                run = words[_RUN * place : None if place == last else _RUN * (place + 1)].strip()
                if end is not None:
                    found[number, place] = end
                elif last and (at := self.text.folded.find(run)) >= 0:
                    found[number, place] = at + len(run)
        return found

    def retells(self) -> bool:
        """Whether it holds no words of any of its messages, but tells of them in others."""
        return not any(self.ends(message) for message in self.sources)


def _of_message(message: Message, shown: Sequence[_Shown]) -> Iterator[tuple[int, int, str, int]]:
    """Rows part, parts, document_id, tokens.

    What documents hold of a message is all of it: what an extraction drops is not asked for. Runs of letters that the
    same documents hold are one part. A document that tells of its messages in other words says all parts once it is
    read whole; so does each that stands for a message of which none holds a word.
    """
    ends = [one.ends(message) for one in shown]
    held: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    """Places of documents -> the runs that just these hold."""
    for run in sorted({run for found in ends for run in found}):
        held.setdefault(tuple(place for place, found in enumerate(ends) if run in found), []).append(run)
    parts = max(len(held), 1)
    for part, (places, runs) in enumerate(held.items()):
        for place in places:
            one = shown[place]
            yield part, parts, one.document_id, one.text.tokens(max(ends[place][run] for run in runs))
    for one, found in zip(shown, ends, strict=True):
        if not found and (not held or one.retells()):
            yield from ((part, parts, one.document_id, one.text.tokens()) for part in range(parts))


def recall_within(
    budgets: Mapping[str, int],
    ranked: pl.DataFrame,
    covered: pl.DataFrame,
    evidence_text: pl.DataFrame,
    dataset: Dataset,
) -> pl.DataFrame:
    """Rows query_id, measure, value: of each query with judged messages, the share of its evidence that is found.

    Documents are read in order, whole, until the budget is spent; the first that no longer fits is cut off there, and
    none follows. So a part of the evidence is read where the tokens of the documents before, with those of the document
    up to the part's end, are within the budget; evidence is found when all its parts are read.

    Args:
        budgets: measure -> tokens.
        ranked: query_id, document_id, rank, tokens.
        covered: query_id, workspace_id, rank, document_id, message: what the document of a rank stands for by itself,
            or instead of a near duplicate, whose id then stands here: that says so when it is read whole.
        evidence_text: as in `RunReading`.
    """
    before = pl.col("tokens").cum_sum().over("query_id", order_by="rank") - pl.col("tokens")
    ends = readings(ranked.with_columns(before=before), covered, evidence_text, dataset)
    found = (
        ends.group_by("query_id", "evidence", "part")
        .agg(pl.col("parts").first(), pl.col("end").min())
        .group_by("query_id", "evidence")
        .agg(pl.when(pl.len() == pl.col("parts").first()).then(pl.col("end").max()).alias("end"))
        .group_by("query_id")
        .agg("end")
    )
    values = evidence_counts(dataset).join(found, on="query_id", how="left", maintain_order="left")
    frames = [
        values.select(
            "query_id",
            measure=pl.lit(measure),
            value=pl.col("end").list.eval(pl.element() <= budget).list.sum().fill_null(0) / pl.col("evidence"),
        )
        for measure, budget in budgets.items()
    ]
    return pl.concat([pl.DataFrame(schema=QUERY_VALUES_SCHEMA), *frames])


def readings(
    ranked: pl.DataFrame, covered: pl.DataFrame, evidence_text: pl.DataFrame, dataset: Dataset
) -> pl.DataFrame:
    """Rows query_id, document_id, tokens, evidence, part, parts, end: after how many tokens a reader has the part.

    Args:
        ranked: query_id, document_id, rank, tokens, and `before`: what is read before the document.
        covered, evidence_text: as of `recall_within`.
    """
    read = ranked.select("query_id", "rank", "tokens", "before", shown="document_id")
    standing = (
        covered.select("query_id", "workspace_id", "rank", "document_id", message_id="message")
        .join(_evidence(dataset), on=["query_id", "message_id"])  # first, for few messages are evidence
        .join(read.rename({"tokens": "whole"}), on=["query_id", "rank"])
    )
    to_end = pl.col("before") + pl.col("tokens")
    is_itself = pl.col("document_id") == pl.col("shown")
    quoted = standing.filter(pl.col("quotation") != "").join(
        evidence_text.select("workspace_id", "quotation", "part", "parts", "tokens", shown="document_id"),
        on=["workspace_id", "quotation", "shown"],
    )
    unquoted = standing.filter(quotation="").join(
        evidence_text.drop("quotation"), on=["workspace_id", "message_id", "document_id"]
    )
    to_whole = pl.col("before") + pl.col("whole")
    columns = {"document_id": "shown", "tokens": "whole", **{name: name for name in ("evidence", "part", "parts")}}
    return pl.concat(
        [
            quoted.select("query_id", **columns, end=to_end),
            unquoted.select("query_id", **columns, end=pl.when(is_itself).then(to_end).otherwise(to_whole)),
        ]
    )


def evidence_counts(dataset: Dataset) -> pl.DataFrame:
    """Rows query_id, evidence: how much there is to find for each query with judged messages."""
    return _evidence(dataset).group_by("query_id", maintain_order=True).agg(pl.col("evidence").n_unique())


def _evidence_of(dataset: Dataset) -> pl.DataFrame:
    """Rows query_id, evidence, message_id, quotation: the quotations of judged messages, and each other judged message
    for itself, with a number below 0 and no quotation."""
    judged = dataset.qrels.filter(pl.col("relevance") > 0).select("query_id", "message_id")
    both = ["query_id", "message_id"]
    quoted = dataset.quotations.join(judged, on=both, how="semi", maintain_order="left")
    alone = judged.join(quoted, on=both, how="anti", maintain_order="left").select(
        "query_id",
        "message_id",
        evidence=-pl.int_range(1, pl.len() + 1).over("query_id"),
        quotation=pl.lit(""),
    )
    return pl.concat([quoted, alone.select(quoted.columns)])


_evidence = KeptBeside(_evidence_of, 4)
"""Once for all arms and points."""


def with_ranked(reachable: pl.DataFrame, rankings: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Rows query_id, document_id, stands_for: what can be ranked and what is, each with all near duplicates that some
    ranking lets it stand for.

    Args:
        reachable: query_id, document_id.
        rankings: query_id, document_id, stands_for.
    """
    named = ["query_id", "document_id"]
    alone = reachable.select(*named, stands_for=pl.lit([], pl.List(pl.String)))
    return (
        pl.concat([alone, *(frame.select(*named, "stands_for") for frame in rankings)])
        .group_by(named, maintain_order=True)
        .agg(pl.col("stands_for").explode().drop_nulls().unique(maintain_order=True))
    )


def best_units(covered: pl.DataFrame, level: str, judgements: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, unit, rank, position (1-based): what is relevant and can be had, most relevant first.

    The rank of the j-th is how many documents cover j of them at the least.

    Args:
        covered: query_id, rank and a column named as the level: of all documents that can be ranked, each by a rank of
            its own.
        judgements: query_id, unit, relevance above 0.
    """
    covers = covered.select("query_id", "rank", unit=level).join(
        judgements, on=["query_id", "unit"], maintain_order="left"
    )
    of_documents: dict[str, dict[int, list[str]]] = {}
    relevances: dict[str, dict[str, int]] = {}
    for query_id, rank, unit, relevance in covers.select("query_id", "rank", "unit", "relevance").iter_rows():
        of_documents.setdefault(query_id, {}).setdefault(rank, []).append(unit)
        relevances.setdefault(query_id, {})[unit] = relevance
    rows: list[tuple[str, str, int, int]] = []
    for query_id, units in relevances.items():
        most = most_covered(of_documents[query_id].values())
        best = sorted(units, key=lambda unit: -units[unit])
        rows += [(query_id, unit, 1 + bisect_left(most, j), j) for j, unit in enumerate(best, start=1)]
    return pl.DataFrame(rows, schema=_UNITS_SCHEMA, orient="row")


def most_covered(documents: Iterable[Iterable[str]]) -> list[int]:
    """Bound how many units one, two, ... documents cover together, up to all documents that differ.

    Beside some others, k documents add no more than the k largest of what each would add by itself; the others are in
    turn each beginning of a greedy cover.
    """
    left = list(dict.fromkeys(frozenset(units) for units in documents))
    most, found = [len(frozenset[str]().union(*left))] * len(left), 0
    while left:
        gains = sorted(map(len, left), reverse=True)
        bounds = accumulate(chain(gains, repeat(0)))
        most = [min(known, found + bound) for known, bound in zip(most, bounds, strict=False)]
        best = max(left, key=len)
        found += len(best)
        left = [more for one in left if (more := one - best)]
    return most


def most_within(budgets: Mapping[str, int], readings: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
    """Rows query_id, measure, value: of each query the largest share of its evidence that budgets of tokens may show.

    Args:
        budgets: measure -> tokens.
        readings: query_id, document_id, tokens, evidence, part, parts, end: how far to read which document for a part.
        counted: query_id, evidence: how much there is.
    """
    limits = np.array(list(budgets.values()))
    standing = (
        readings.sort("end", maintain_order=True)
        .unique(["query_id", "document_id", "evidence", "part"], keep="first", maintain_order=True)
        .select("query_id", "document_id", "tokens", "evidence", "part", "parts", "end")
    )
    of_query: dict[str, list[_Reading]] = {}
    for query_id, *reading in standing.iter_rows():
        of_query.setdefault(query_id, []).append(_Reading(*reading))
    rows = [
        (query_id, measure, float(most / evidence))
        for query_id, evidence in counted.iter_rows()
        for measure, most in zip(budgets, _most_found(limits, of_query.get(query_id, ())), strict=True)
    ]
    return pl.DataFrame(rows, schema=QUERY_VALUES_SCHEMA, orient="row")


class _Reading(NamedTuple):
    """How far to read a document for a part of some evidence."""

    document_id: str
    tokens: int
    evidence: int
    part: int
    parts: int
    end: int


def _most_found(budgets: np.ndarray, readings: Iterable[_Reading]) -> np.ndarray:
    """Bound how many relevant units each budget of tokens shows; readings come by their end, each part of a document
    once.

    One document may be read in part; each other one is paid for whole, by its parts of evidence in equal shares, so a
    part costs no less than its cheapest share of a document. For each end of the document that is read in part, what
    stands before it is free.
    """
    ends: dict[str, list[tuple[int, _Part]]] = {}
    tokens: dict[str, int] = {}
    parts: dict[int, int] = {}
    for document, whole, evidence, part, of, end in readings:
        ends.setdefault(document, []).append((end, (evidence, part)))
        tokens[document], parts[evidence] = whole, of
    price: dict[_Part, float] = {}
    for document, standing in ends.items():
        for _, one in standing:
            price[one] = min(price.get(one, np.inf), tokens[document] / len(standing))
    had = Counter(evidence for evidence, _ in price)
    place = {evidence: i for i, evidence in enumerate(one for one in parts if had[one] == parts[one])}
    costs = np.zeros(len(place))
    for (evidence, _), share in price.items():
        if evidence in place:
            costs[place[evidence]] += share
    most = _affordable(costs, budgets)
    for standing in ends.values():
        reduced = costs.copy()
        for end, (evidence, part) in standing:
            if evidence in place:
                reduced[place[evidence]] -= price[evidence, part]
                most = np.maximum(most, _affordable(reduced, budgets - end))
    return most


def _affordable(costs: np.ndarray, budgets: np.ndarray) -> np.ndarray:
    spent = np.cumsum(np.sort(costs))
    return np.where(budgets < 0, 0, np.searchsorted(spent, budgets + _ROUNDING, side="right"))
