"""A dataset as a collection of documents and queries, for tools that know nothing of conversations."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from urllib.parse import quote

import polars as pl

from eval.dataset.dataset import Dataset
from eval.exchange.collection import CANDIDATES_SCHEMA, CORPUS_SCHEMA, JUDGED_SCHEMA, QUERIES_SCHEMA, Collection
from lcm.clock import EPOCH
from lcm.records.conversation import Message
from lcm.transcript.passages import SAID
from lcm.writing.extraction.said import words_of

CORPUS_ID = "corpus_id"
"""The key of an envelope that holds the id of the document which a message was made of."""
_BLANK, _BLANK_OR_PERCENT = re.compile(r"\s"), re.compile(r"[\s%]")


def document_ids(dataset: Dataset) -> dict[tuple[str, str], str]:
    """(workspace, message id) -> the id of the message as a document.

    That is the id of the document that it was made of, else the message's own; where one id names different messages
    of two workspaces, `WORKSPACE/ID` stands for each. Where a message's own holds a blank, as the name of a file may,
    each blank of any is written %20, and % is %25.
    """
    named: dict[tuple[str, str], str] = {}
    words: dict[str, tuple[str, str]] = {}
    is_shared = is_own = False
    for workspace, message in _messages(dataset):
        document_id = str(message.envelope.get(CORPUS_ID) or message.message_id)
        said = _title_and_text(message)
        is_own |= CORPUS_ID not in message.envelope
        is_shared |= words.setdefault(document_id, said) != said
        named[workspace, message.message_id] = document_id
    if is_shared:
        named = {place: f"{place[0]}/{name}" for place, name in named.items()}
    if is_own and any(_BLANK.search(name) for name in named.values()):
        named = {place: _BLANK_OR_PERCENT.sub(lambda one: quote(one[0]), name) for place, name in named.items()}
    return named


def collection_of(dataset: Dataset) -> tuple[Collection, tuple[str, ...]]:
    """The dataset as documents, queries and judgements, and what of it that cannot say, a line each.

    A document is a message, in the words that `extraction=verbatim` makes of it. Where a query may not be answered with
    every document, because the others are of another workspace or were said after it was asked, its candidates say so.
    """
    names = document_ids(dataset)
    documents: dict[str, tuple[str, str]] = {}
    for workspace, message in _messages(dataset):
        documents.setdefault(names[workspace, message.message_id], _title_and_text(message))
    workspace_of = {query.query_id: query.workspace_id for query in dataset.queries}
    qrels = [
        (query_id, names[workspace_of[query_id], message_id], relevance)
        for query_id, message_id, relevance in dataset.qrels.select("query_id", "message_id", "relevance").iter_rows()
    ]
    candidates = list(_candidates(dataset, names))
    is_open = all(len(ids) == len(documents) for _, ids in candidates)
    queries = [(query.query_id, query.text) for query in dataset.queries]
    collection = Collection(
        corpus=pl.DataFrame([(name, *words) for name, words in documents.items()], schema=CORPUS_SCHEMA, orient="row"),
        queries=pl.DataFrame(queries, schema=QUERIES_SCHEMA, orient="row"),
        qrels=pl.DataFrame(qrels, schema=JUDGED_SCHEMA, orient="row"),
        candidates=None if is_open else pl.DataFrame(candidates, schema=CANDIDATES_SCHEMA, orient="row"),
    )
    return collection, _left_out(dataset)


def _messages(dataset: Dataset) -> Iterator[tuple[str, Message]]:
    for transcript in dataset.transcripts:
        for message in transcript.messages:
            yield transcript.workspace_id, message


def _title_and_text(message: Message) -> tuple[str, str]:
    if CORPUS_ID in message.envelope:
        native = message.envelope["native"]
        return native["title"], native["text"]
    return "", words_of(message, author_prefix=True, kinds=SAID)


def _candidates(dataset: Dataset, names: dict[tuple[str, str], str]) -> Iterator[tuple[str, list[str]]]:
    """Query id -> the documents of its workspace that were said when it was asked, in their order."""
    said = defaultdict(list)
    for transcript in dataset.transcripts:
        known = EPOCH
        for message in transcript.messages:
            known = max(known, message.created_at or known)
            said[transcript.workspace_id].append((known, names[transcript.workspace_id, message.message_id]))
    for query in dataset.queries:
        visible = (name for instant, name in said[query.workspace_id] if instant <= query.asked_at)
        yield query.query_id, list(visible)


def _left_out(dataset: Dataset) -> tuple[str, ...]:
    by_message = Counter(dataset.qrels.filter(pl.col("relevance") > 0)["query_id"])
    by_session = set(dataset.session_qrels["query_id"]) - by_message.keys()
    judged = by_message.keys() | by_session
    unjudged = sum(query.query_id not in judged for query in dataset.queries)
    notes = {
        f"{len(by_session)} queries are judged by session alone, which judgements of documents cannot say": by_session,
        f"{unjudged} queries have no judgements: most tools leave these out": unjudged,
        "who said what in which session and when is not in a collection": True,
    }
    return tuple(note for note, holds in notes.items() if holds)
