"""What a log of an external memory says: its answers as ranked documents, its contexts, and what went wrong.

Which messages a text stands for is worked out: a memory that names the messages is believed where the text holds their
words, or retells them. Else the text is looked for among the messages that it was given, without regard to case, white
space and kinds of quotation marks: a message in the text, or the text in a message; then messages that a stretch of the
text nearly repeats.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import polars as pl
from rapidfuzz import fuzz

from eval.answering import Excerpt, within
from eval.dataset.dataset import Dataset, opaque_id
from eval.external.session import Told, incident, message_told
from eval.measures.measure import REPORT_TOKENS
from eval.questions.quotation import folded
from lcm.clock import EPOCH
from lcm.javascript import utf16_length
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import REASONS_SCHEMA, Batch
from lcm.records.context import Context, ContextItem
from lcm.records.document import GLOBAL_SCOPE
from lcm.retrieval.ranking.pipeline import LISTS, PLAN_SCHEMA, RANKED_SCHEMA, SOURCE, TRACE_SCHEMA
from lcm.retrieval.source.indexes import FOUND_BY_SCHEMA
from lcm.store.documents import DOCUMENT_SCHEMA

How = Literal["named", "exact", "near", "none", "foreign", "early"]
"""How a text came to stand for messages: the memory named them, their words stand there, or nearly; or why it stands
for none: nothing is like it, it was said in another workspace, or it was not added yet."""
_SPEAKER = re.compile(r"^\W*[^\W\d_][\w .'-]{0,40}: ")
_UNSPACED = "\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[^\W{_UNSPACED}]+|[{_UNSPACED}]")
"""Of scripts without spaces each letter is a word."""
_SHORTEST = 16
"""Letters of a message that is recognised within a longer text, where it is no line of its own."""
_SHORTEST_NEAR = 24
_CLOSEST = 8
"""Messages that a stretch is held against, those that share the rarest words with it."""


class Aligned(NamedTuple):
    """What became of a text."""

    message_ids: tuple[str, ...]
    how: How
    is_edited: bool = False
    """Named messages stand there, though not as they were said."""
    is_retold: bool = False
    """It holds no words of the messages that it names."""
    unknown_ids: int = 0
    """Ids that name nothing which was added."""
    is_overstated: bool = False
    """It names more messages than it has words for: those that do not stand in it are not believed."""
    is_misnamed: bool = False
    """It is another message than those that it names: they are not believed."""


@dataclass(frozen=True, slots=True)
class _Said:
    place: int
    message_id: str
    words: str


class Aligner:
    """Aligns texts to the messages of one workspace, as far as they were added."""

    def __init__(
        self, said: Sequence[tuple[str, str, str | None]], foreign: Collection[str], similarity: float
    ) -> None:
        """Take id, words and author of every message, in the order of adding; what was said in other workspaces; and
        from which similarity, in [0, 1], a stretch nearly repeats a message."""
        self._similarity = 100 * similarity
        self._foreign = foreign
        self._all = [_Said(place, name, folded(words)) for place, (name, words, _) in enumerate(said)]
        self._place = {one.message_id: one.place for one in self._all}
        self._whole: dict[str, list[_Said]] = defaultdict(list)
        self._holding: dict[str, list[_Said]] = defaultdict(list)
        """Word -> the messages that hold it."""
        for one, (_, _, author) in zip(self._all, said, strict=True):
            for form in {one.words, folded(f"{author}: {one.words}")} if author else {one.words}:
                self._whole[form].append(one)
            for word in set(_WORD.findall(one.words)):
                self._holding[word].append(one)
        self._by_rarest: dict[str, list[_Said]] = defaultdict(list)
        for one in self._all:
            if words := _WORD.findall(one.words):
                self._by_rarest[min(words, key=lambda word: len(self._holding[word]))].append(one)
        self._kept: dict[tuple[str, tuple[str, ...] | None, int], Aligned] = {}

    def align(self, text: str, named: Sequence[str] | None, added: int) -> Aligned:
        """Align a text to the first messages that were added, as far as the memory names them or their words tell."""
        key = (text, None if named is None else tuple(named), added)
        if key not in self._kept:
            self._kept[key] = self._aligned(*key)
        return self._kept[key]

    def _aligned(self, text: str, named: Sequence[str] | None, added: int) -> Aligned:
        known = [name for name in dict.fromkeys(named or ()) if self._place.get(name, added) < added]
        unknown = len(set(named or ())) - len(known)
        words = folded(text)
        standing, near = self._standing(words, known)
        if not standing:
            found, how = self._by_content(text, words, added)
            is_another = how in ("foreign", "early") or (how == "exact" and len(words) >= _SHORTEST_NEAR)
            if not known or is_another:
                is_misnamed = bool(known) and how == "exact"
                return Aligned(_names(found), how, unknown_ids=unknown, is_misnamed=is_misnamed)
        retold = [name for name in known if name not in standing]
        rest = words
        for name in standing:
            rest = rest.replace(self._all[self._place[name]].words, " ")
        is_overstated = len(retold) > max(1, len(set(_WORD.findall(rest))))
        if is_overstated and not standing:
            return Aligned(_names(found), how, unknown_ids=unknown, is_overstated=True)
        believed = tuple(name for name in known if name in standing or not is_overstated)
        return Aligned(
            believed, "named", is_edited=bool(near), is_retold=bool(retold) and not is_overstated,
            unknown_ids=unknown, is_overstated=is_overstated,
        )  # fmt: skip

    def _standing(self, words: str, known: Sequence[str]) -> tuple[set[str], set[str]]:
        """Which of some messages stand in a text; and which of these nearly."""
        said = {name: self._all[self._place[name]].words for name in known}
        exact = {name for name, theirs in said.items() if theirs and _holds(words, theirs)}
        near = {name for name in said.keys() - exact if self._is_near(words, self._all[self._place[name]])}
        return exact | near, near

    def _by_content(self, text: str, words: str, added: int) -> tuple[Collection[_Said], How]:
        exact = set(self._exact(text, words))
        if standing := {one for one in exact if one.place < added}:
            return standing, "exact"
        if exact:
            return (), "early"
        if any(line in self._foreign for line in (text.strip(), *_unspoken(text.strip()))):
            return (), "foreign"
        near = {one for stretch in _stretches(text, words) for one in self._near(stretch)}
        if standing := {one for one in near if one.place < added}:
            return standing, "near"
        return (), "early" if near else "none"

    def _exact(self, text: str, words: str) -> Iterator[_Said]:
        """Messages that the text is, has as a line, or holds; and those that hold it."""
        for line in {words, *map(folded, text.splitlines())}:
            for form in (line, *_unspoken(line)):
                yield from self._whole.get(form, ()) if form else ()
        of_text = set(_WORD.findall(words))
        for word in of_text:
            for one in self._by_rarest.get(word, ()):
                if len(one.words) >= _SHORTEST and one.words in words:
                    yield one
        inner = _WORD.findall(words)[1:-1]
        if len(words) >= _SHORTEST and inner:
            for one in min((self._holding.get(word, []) for word in inner), key=len):
                if words in one.words:
                    yield one

    def _near(self, stretch: str) -> Iterator[_Said]:
        """Messages that a stretch nearly repeats, of those that share the rarest words with it."""
        if len(stretch) < _SHORTEST_NEAR:
            return
        weights: dict[int, float] = defaultdict(float)
        most = max(50, len(self._all) // 20)
        for word in set(_WORD.findall(stretch)):
            holding = self._holding.get(word, ())
            if len(holding) <= most:  # what stands everywhere tells none apart
                for one in holding:
                    weights[one.place] += 1 / len(holding)
        for place in sorted(weights, key=lambda place: (-weights[place], place))[:_CLOSEST]:
            if self._is_near(stretch, self._all[place]):
                yield self._all[place]

    def _is_near(self, stretch: str, one: _Said) -> bool:
        is_long = min(len(stretch), len(one.words)) >= _SHORTEST_NEAR
        return is_long and fuzz.partial_ratio(stretch, one.words, score_cutoff=self._similarity) > 0


def _names(found: Iterable[_Said]) -> tuple[str, ...]:
    return tuple(one.message_id for one in sorted(found, key=lambda one: one.place))


def foreign_texts(texts: Iterable[str], said_elsewhere: Iterable[str]) -> set[str]:
    """Those of some texts, or of what they say behind a speaker's name, that were said in other workspaces.

    What is too short to tell where it was said is left out.
    """
    wanted = {
        form for text in texts for form in (text.strip(), *_unspoken(text.strip())) if len(form) >= _SHORTEST_NEAR
    }
    return {words for words in said_elsewhere if words in wanted}


def _holds(text: str, words: str) -> bool:
    return words in text or (len(text) >= _SHORTEST and text in words)


def _unspoken(line: str) -> Iterator[str]:
    """A line without the speaker that it begins with."""
    if spoken := _SPEAKER.match(line):
        yield line[spoken.end() :].strip()


def _stretches(text: str, words: str) -> Iterator[str]:
    """The whole text; then its lines, without speakers."""
    yield words
    lines = [folded(line) for line in text.splitlines()]
    for line in lines:
        for form in (line, *_unspoken(line)):
            if form != words:
                yield form


def shares(counts: Mapping[How, int]) -> float:
    """The share of texts that stand for messages, of those of which it can be told."""
    told = sum(counts.values())
    return (told - counts.get("none", 0)) / told if told else 1.0


_WHOLE, _NUMBER, _TEXT = pl.Int64(), pl.Float64(), pl.String()
HOW: tuple[How, ...] = get_args(How)
ANSWERS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("query_id", "document_id"), _TEXT),
    "rank": _WHOLE,
    "score": _NUMBER,
}
_OF_LOG: dict[str, pl.DataType] = {
    **dict.fromkeys(("query_id", "fault", "detail"), _TEXT),
    **dict.fromkeys(("round_trip_ms", "took_ms"), _NUMBER),
}
ASKED_SCHEMA: dict[str, pl.DataType] = {
    **_OF_LOG,
    **dict.fromkeys(("given", "could_give", *HOW), _WHOLE),
    "unjudged_budgets": pl.List(pl.Int64),
}
"""A row a query: the fault that came instead of an answer, null where it was answered; how long that took, seen from
here and, where the memory says so, by its own clock; how many texts it gave, and how many it could have, as far as they
were asked for and messages added; its texts by how they came to stand for messages, as `How` has it; the budgets of its
contexts that hold text of which none could be aligned."""
KIND = "external"


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """What an external memory answered in one workspace: a `Ranker` of one step that gives it again."""

    answers: pl.DataFrame
    """Rows of `ANSWERS_SCHEMA`, best first."""
    brought: pl.DataFrame
    """Rows of `DOCUMENT_SCHEMA`: the texts that were returned, each with the messages that it stands for."""
    asked: pl.DataFrame
    """Rows of `ASKED_SCHEMA`, a query each."""
    contexts: Mapping[tuple[str, datetime | None, int], Context] = field(default_factory=dict)
    """By the words of the query, when it was asked, and the budget."""
    incidents: Mapping[str, int] = field(default_factory=dict)
    told: Told = field(default_factory=Told)

    contract = Contract(asks=())

    def rank(self, batch: Batch) -> pl.DataFrame:
        return (
            self._answers(batch)
            .match_to_schema(pl.Schema(RANKED_SCHEMA), missing_columns="insert")
            .with_columns(is_recovered=pl.lit(False), **{name: pl.lit([], RANKED_SCHEMA[name]) for name in LISTS})
        )

    def trace(self, batch: Batch) -> pl.DataFrame:
        rows = self._answers(batch).with_columns(step=pl.lit(0, pl.Int32), stage=pl.lit(SOURCE))
        return rows.match_to_schema(pl.Schema(TRACE_SCHEMA), missing_columns="insert")

    def plan(self, batch: Batch) -> pl.DataFrame:
        steps = batch.queries.select("query_id", step=pl.lit(0, pl.Int32), stage=pl.lit(SOURCE))
        return steps.select(list(PLAN_SCHEMA))

    def found_by(self, batch: Batch) -> pl.DataFrame:
        return self._answers(batch).with_columns(branch=pl.lit(KIND)).select(list(FOUND_BY_SCHEMA))

    def reasons(self, batch: Batch) -> pl.DataFrame:
        """It tells none."""
        return pl.DataFrame(schema={"step": pl.Int32(), **REASONS_SCHEMA})

    def _answers(self, batch: Batch) -> pl.DataFrame:
        asked = batch.queries.select("query_id")
        return asked.join(self.answers, on="query_id", maintain_order="left_right")


class LogReading:
    """Reads the log of one workspace of a dataset."""

    def __init__(
        self, log: pl.DataFrame, workspace: str, dataset: Dataset, k: int, similarity: float, noise: Mapping[str, int]
    ) -> None:
        """Take a log, rows of `LOG_SCHEMA`.

        Args:
            k: texts of an answer that count; those all of whose messages the asker sees are none of them.
            similarity: from which a stretch of a text nearly repeats a message.
            noise: what was counted while it was asked.
        """
        self._rows = log.rows(named=True)
        self._workspace, self._k, self._incidents = workspace, k, Counter(noise)
        self._queries = {query.query_id: query for query in dataset.queries if query.workspace_id == workspace}
        self._sessions: dict[str, tuple[str, str, datetime | None]] = {}
        told, elsewhere = dict[str, tuple[str, str, str | None]](), list[str]()
        for transcript in dataset.transcripts:
            for message in transcript.messages:
                if transcript.workspace_id != workspace:
                    elsewhere.append(message.content.strip())
                    continue
                name, conversation_id = message.message_id, transcript.conversation_id
                self._sessions[name] = conversation_id, message.session_id, message.created_at
                if (one := message_told(message, conversation_id)) is not None:
                    told[name] = name, one["content"], message.author
        added = dict.fromkeys(name for row in self._rows if row["call"] == "add" for name in row["texts"] or ())
        texts = [text for row in self._rows if row["call"] in ("search", "context") for text in row["texts"] or ()]
        said = [told[name] for name in (*added, *(name for name in told if name not in added))]
        self._aligner = Aligner(said, foreign_texts(texts, elsewhere), similarity)
        self._documents: dict[str, dict[str, Any]] = {}
        self._unjudged: dict[str, list[int]] = {}
        """Query -> budgets of contexts of whose texts none could be aligned."""

    def answered(self) -> RecordedAnswers:
        answers, asked = list[tuple[Any, ...]](), list[dict[str, Any]]()
        contexts: dict[tuple[str, datetime | None, int], Context] = {}
        for row in self._rows:
            if row["fault"] is not None:
                self._incidents[incident(row["call"], row["fault"])] += 1
            if row["call"] == "search":
                told = [*islice(self._unseen(row), self._k)] if row["fault"] is None else []
                counts = Counter(aligned.how for *_, aligned in told)
                asked_for = self._k + len(self._queries[row["query_id"]].shown_message_ids)
                given = {"given": len(row["texts"] or ()), "could_give": min(asked_for, row["added"])}
                asked.append({name: row[name] for name in _OF_LOG} | given | {how: counts[how] for how in HOW})
                for rank, (text, score, aligned) in enumerate(told, start=1):
                    answers.append((row["query_id"], self._document(text, aligned), rank, score))
            elif row["call"] == "context" and row["fault"] is None:
                query = self._queries[row["query_id"]]
                contexts[query.text, query.asked_at, row["budget_tokens"]] = self._context(row)
        asked = [one | {"unjudged_budgets": self._unjudged.get(one["query_id"], [])} for one in asked]
        reset = (row["texts"] for row in self._rows if row["call"] == "reset" and row["texts"])
        name, version, *notes = next(reset, ("", ""))
        return RecordedAnswers(
            pl.DataFrame(answers, schema=ANSWERS_SCHEMA, orient="row"),
            pl.DataFrame(list(self._documents.values()), schema=DOCUMENT_SCHEMA, orient="row"),
            pl.DataFrame(asked, schema=ASKED_SCHEMA, orient="row"),
            contexts,
            self._incidents,
            Told(name, version, notes=tuple(notes)),
        )

    def _unseen(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float | None, Aligned]]:
        """The texts of an answer without what the asker sees already."""
        shown = set(self._queries[row["query_id"]].shown_message_ids)
        for told in self._texts(row):
            ids = set(told[2].message_ids)
            if not ids or not ids <= shown:
                yield told

    def _texts(self, row: Mapping[str, Any]) -> Iterator[tuple[str, float | None, Aligned]]:
        """The texts of an answer, each once, with what became of them."""
        if row["surplus"]:
            self._incidents["external: answers of more than k texts"] += 1
        seen = set[str]()
        for text, score, ids in zip(row["texts"], row["scores"], row["source_ids"], strict=True):
            if (words := folded(text)) in seen or not words:
                self._incidents["external: texts repeated" if words else "external: texts without words"] += 1
                continue
            seen.add(words)
            aligned = self._aligner.align(text, ids, row["added"])
            self._incidents.update({f"external: {name}": n for name, n in _wrong(aligned, ids).items() if n})
            yield text, score, aligned

    def _document(self, text: str, aligned: Aligned) -> str:
        name = opaque_id(self._workspace, text, *aligned.message_ids)
        if name not in self._documents:
            places = [self._sessions[one] for one in aligned.message_ids]
            conversation, session, _ = places[0] if places else ("", "", None)
            at = max((said for *_, said in places if said is not None), default=EPOCH)
            self._documents[name] = {
                "document_id": name, "text": text, "overview": "", "content": "", "kind": KIND, "category": "other",
                "scope": GLOBAL_SCOPE, "conversation_id": conversation, "session_id": session,
                "source_message_ids": list(aligned.message_ids), "created_at": at, "valid_from": at,
                "access_count": 0, "importance": 0.7, "confidence": 0.7, "decay_tier": "working",
                "temporal_type": "static", "tokens": REPORT_TOKENS.count([text])[0], "length_utf16": utf16_length(text),
                "is_durable": True, "authority": 0.0, "decay_rate": 0.0, "hop_targets": [],
            }  # fmt: skip
        return name

    def _context(self, row: Mapping[str, Any]) -> Context:
        """What came back, as far as the budget goes."""
        budget: int = row["budget_tokens"]
        told = [pair for pair in zip(row["texts"], row["source_ids"], strict=True) if pair[0].strip()]
        shown = within((Excerpt(text) for text, _ in told), budget, REPORT_TOKENS)
        if [one.text for one in shown] != [text for text, _ in told]:
            self._incidents["external: contexts above their budget"] += 1
        items, ways = [], set[How]()
        for excerpt, (text, named) in zip(shown, told, strict=False):
            is_cut = len(excerpt.text) < len(text)
            aligned = self._aligner.align(excerpt.text, None if is_cut else named, row["added"])
            ways.add(aligned.how)
            name = opaque_id(self._workspace, excerpt.text, *aligned.message_ids)
            tokens = REPORT_TOKENS.count([excerpt.text])[0]
            items.append(ContextItem("document", name, excerpt.text, tokens, source_message_ids=aligned.message_ids))
        if "none" in ways and ways <= {"none", "foreign", "early"}:
            self._unjudged.setdefault(row["query_id"], []).append(budget)
        return Context(tuple(items), sum(one.tokens for one in items), budget)


def _wrong(aligned: Aligned, named: Sequence[str] | None) -> dict[str, int]:
    """What may be wrong with a text -> how often it is."""
    return {
        "source ids that name nothing added": aligned.unknown_ids,
        "texts that lost their source ids": int(named is not None and not named),
        "texts edited": int(aligned.is_edited or aligned.how == "near"),
        "texts in other words than the messages they name": int(aligned.is_retold),
        "texts that name more messages than they have words": int(aligned.is_overstated),
        "texts that are another message than they name": int(aligned.is_misnamed),
        "texts of another workspace": int(aligned.how == "foreign"),
        "texts of what was not added yet": int(aligned.how == "early"),
    }
