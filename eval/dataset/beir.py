"""A folder in the layout of BEIR or MTEB: every document a message, every query with its judgements."""

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

import polars as pl

from eval.dataset.card import Card
from eval.dataset.collected import CORPUS_ID
from eval.dataset.dataset import QRELS_SCHEMA, Dataset, opaque_id
from eval.exchange.beir import read_beir
from eval.exchange.collection import Collection
from lcm.clock import EPOCH
from lcm.errors import DatasetError
from lcm.given import opened_as_is
from lcm.records.conversation import Message, Part, Transcript
from lcm.records.query import Query

ASKED_AT = EPOCH + timedelta(days=1)
"""After all was said: nothing in a collection is dated."""
_IDENTICAL = "queries have the id of a document, which is not ranked for them (dataset.ignore_identical_ids)"


@dataclass(frozen=True, slots=True)
class Beir:
    """The collection of one folder.

    A workspace is what a query may be answered with: the whole corpus, or the candidates that top_ranked names; queries
    with the same candidates share one. Times: none recorded. Judged unit: the document, which is a message here.
    """

    directory: str | None = None
    """With corpus, queries and qrels."""
    split: str = "test"
    """Of the qrels: test, dev, train; where there is one alone, that one."""
    subset: str | None = None
    """Of a folder that holds several, `en` for `en-corpus`."""
    instructions: bool = False
    """Ask `Instruct: INSTRUCTION`, a new line and `Query: QUERY` where the folder has an instruction for the query."""
    ignore_identical_ids: bool = True
    """Rank no document for a query of the same id, as BEIR does: in ArguAna and Quora the query is that document."""

    card: ClassVar[Card] = Card(
        name="beir",
        title="a folder in the layout of BEIR or MTEB: corpus, queries, qrels, and top_ranked where there is one",
        licence="that of the files",
        origin="the folder that dataset.directory names",
        how_to_get="publish one, download one, or write one: lcm datasets write dataset=locomo to=FOLDER",
        files=(),
    )

    def load(self) -> Dataset:
        if self.directory is None:
            raise DatasetError("dataset.directory names no folder: set it to one that holds corpus, queries and qrels")
        whole = read_beir(Path(self.directory).expanduser(), self.split, self.subset)
        notes = {}
        judged = whole.qrels.filter(pl.col("query_id").is_in(whole.queries["query_id"].implode()))
        judged = judged.filter(pl.col("document_id").is_in(whole.corpus["document_id"].implode()))
        notes["judgements name a query or document that is not there"] = len(whole.qrels) - len(judged)
        asked = whole.queries.join(judged, on="query_id", how="semi", maintain_order="left")
        notes[f"queries have no judgements in split {self.split} and are left out"] = len(whole.queries) - len(asked)
        candidates = _candidates(whole)
        if candidates is not None:
            offered = asked.filter(pl.col("query_id").is_in(list(candidates)))
            notes["queries have no candidates and are left out"] = len(asked) - len(offered)
            asked = offered
        workspaces, of_query = _workspaces(asked["query_id"], candidates)
        native = {row["document_id"]: row for row in whole.corpus.iter_rows(named=True)}
        transcripts = tuple(_transcript(name, native, documents) for name, documents in workspaces.items())
        inside: dict[str, Container[str]] = {
            name: native if documents is None else set(documents) for name, documents in workspaces.items()
        }
        identical = {one for one, place in of_query.items() if self.ignore_identical_ids and one in inside[place]}
        notes[_IDENTICAL] = len(identical)
        instructions = {} if whole.instructions is None else dict(whole.instructions.iter_rows())
        queries = tuple(
            Query(
                query_id,
                self._asked(text, instructions.get(query_id)),
                ASKED_AT,
                of_query[query_id],
                shown_message_ids=(_message_id(query_id),) if query_id in identical else (),
            )
            for query_id, text in asked.iter_rows()
        )
        qrels, out, own = [], 0, 0
        for query_id, document_id, relevance in judged.iter_rows():
            if query_id in of_query:
                if document_id in inside[of_query[query_id]]:
                    qrels.append((query_id, _message_id(document_id), max(relevance, 0)))
                    own += relevance > 0 and query_id == document_id and query_id in identical
                else:
                    out += relevance > 0
        notes["relevant documents are not among their query's candidates"] = out
        notes["relevant documents have the id of their query, and cannot be found"] = own
        protocol = (
            f"split={self.split} subset={self.subset} instructions={self.instructions} "
            f"ignore_identical_ids={self.ignore_identical_ids} unit=document"
        )
        return Dataset(
            name=self.card.name,
            protocol=protocol,
            digest=_digest(whole.files, protocol),
            transcripts=transcripts,
            queries=queries,
            qrels=pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row"),
            notes=tuple(f"{count} {what}" for what, count in notes.items() if count),
        )

    def _asked(self, text: str, instruction: str | None) -> str:
        return f"Instruct: {instruction}\nQuery: {text}" if self.instructions and instruction else text


def _candidates(whole: Collection) -> dict[str, tuple[str, ...]] | None:
    """Query id -> the documents of the corpus that it may be answered with, in the corpus's order."""
    if whole.candidates is None:
        return None
    place = {document_id: number for number, document_id in enumerate(whole.corpus["document_id"])}
    sets: dict[tuple[str, ...], tuple[str, ...]] = {}  # most queries share theirs with others
    found = {}
    for query_id, documents in whole.candidates.iter_rows():
        given = tuple(documents)
        if given not in sets:
            sets[given] = tuple(sorted(place.keys() & set(given), key=place.__getitem__))
        found[query_id] = sets[given]
    return found


def _workspaces(
    queries: Iterable[str], candidates: Mapping[str, tuple[str, ...]] | None
) -> tuple[dict[str, tuple[str, ...] | None], dict[str, str]]:
    """Workspace -> its documents (None = the corpus), and query id -> its workspace."""
    if candidates is None:
        return {"corpus": None}, dict.fromkeys(queries, "corpus")
    names: dict[tuple[str, ...], str] = {}
    of_query = {query: names.setdefault(candidates[query], f"candidates-{len(names)}") for query in queries}
    return {name: documents for documents, name in names.items()}, of_query


def _transcript(name: str, native: Mapping[str, Mapping[str, str]], documents: Sequence[str] | None) -> Transcript:
    session = opaque_id("beir", name, "session")
    messages = (_message(native[document], session) for document in (native if documents is None else documents))
    return Transcript(opaque_id("beir", name), tuple(messages), name)


def _message(row: Mapping[str, str], session: str) -> Message:
    text = " ".join(filter(None, (row["title"], row["text"])))
    document = {"_id": row["document_id"], "title": row["title"], "text": row["text"]}
    return Message(
        message_id=_message_id(row["document_id"]),
        role="user",
        content=text,
        session_id=session,
        parts=(Part("text", text=text),),
        envelope={"native": document, "slots": {}, CORPUS_ID: row["document_id"]},
    )


def _message_id(document_id: str) -> str:
    """The ids of a collection may tell what is relevant."""
    return opaque_id("beir", document_id)


def _digest(files: Sequence[Path], protocol: str) -> str:
    digests = []
    for path in files:
        with opened_as_is(path) as content:
            digests.append(hashlib.file_digest(content, "sha256").hexdigest())
    return hashlib.sha256("\n".join([*digests, protocol]).encode()).hexdigest()
