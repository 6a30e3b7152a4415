"""Memory: one workspace of a memory system, wired from its parts."""

import logging
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from lcm.clock import EPOCH
from lcm.compaction.work import Clock
from lcm.errors import LcmError, StoreError
from lcm.javascript import first_units
from lcm.memory.conversation_compaction import ConversationCompaction
from lcm.memory.documents import FoldedDocuments, MessageDocuments
from lcm.memory.live_documents import DocumentChange, LiveDocuments, check, in_order, query_batches, readable_scopes
from lcm.memory.scopes import Identity, identified
from lcm.memory.session import MessagePreparer, follow_host, hide_heartbeats
from lcm.memory.system import System
from lcm.protocols.context import Assembly, ContextRequest, LooksUp, Mention, ShowsTail
from lcm.protocols.contract import contract_of
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Batch, BringsDocuments, Ranker
from lcm.records.context import Context
from lcm.records.conversation import JournalEntry, Message, Transcript
from lcm.records.document import SPOKEN_KINDS, AuthoredNode, Document
from lcm.records.query import Query, Recalled
from lcm.records.summary import CompactionReport
from lcm.retrieval.indexes import Indexes
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA, TRACE_SCHEMA
from lcm.store.conversations import active_conversation, add_entry, read_entries
from lcm.store.documents import drop_documents, put_nodes, read_nodes
from lcm.store.messages import messages_by_number
from lcm.store.search import WORDS, SearchBounds, find
from lcm.store.store import Store
from lcm.writing.dream import Promotion, promote
from lcm.writing.new_document import document_of_node

if TYPE_CHECKING:
    from lcm.memory.session_bootstrap import BootstrapReport

_COLUMNS = (
    "query_id", "document_id", "text", "kind", "source_message_ids", "created_at", "score", "cosine", "role",
    "scope_class", "confidence", "index_tier", "is_recovered", "tokens",
)  # fmt: skip
_RELATED_UNITS = 80
"""UTF-16 units that are shown of a related document, as memory-lancedb-pro shows them."""
_MENTIONS = 32
"""Messages that are looked at for each name."""
_log = logging.getLogger(__name__)
_MESSAGES_A_TRANSACTION = 4096
"""Where transcripts are taken in together: about as many, for none is cut."""


def put_authored(store: Store, nodes: Sequence[AuthoredNode], assembly: Assembly) -> bool:
    """Let the store hold these blocks and no others; says whether it held others before.

    Raises:
        LcmError: if there are blocks that must be shown, and the assembly never shows any.
    """
    unseen = sum(node.tier != "variant" for node in nodes)
    if unseen and not assembly.shows_documents:
        raise LcmError(
            f"authored holds {unseen} hard and soft blocks, which this assembly never shows: choose "
            "assembly=continuity, or authored=none"
        )
    with store.reading() as connection:
        if list(nodes) == read_nodes(connection):
            return False
    with store.writing() as connection:
        put_nodes(connection, nodes)
        drop_documents(connection, "authored")
        store.add_documents([document_of_node(node) for node in nodes if node.tier == "variant"])
    return True


def recalled_by_query(ranked: pl.DataFrame, documents: pl.DataFrame) -> dict[str, tuple[Recalled, ...]]:
    """What `Memory.rank` answered, by query id, best first; `documents` are those of the workspace."""
    rows = ranked.join(documents, on="document_id", how="left", maintain_order="left").select(_COLUMNS)
    related = _related(ranked, documents)
    found: dict[str, list[Recalled]] = {}
    for query_id, document_id, text, kind, sources, created_at, score, cosine, role, *rest in rows.iter_rows():
        said_by = role or "" if kind in SPOKEN_KINDS else ""
        one = Recalled(document_id, text, kind, tuple(sources), created_at, score or 0.0, cosine or 0.0, said_by, *rest)
        if beside := related.get((query_id, document_id)):
            one = replace(one, related=beside)
        found.setdefault(query_id, []).append(one)
    return {query_id: tuple(documents) for query_id, documents in found.items()}


def _related(ranked: pl.DataFrame, documents: pl.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """The beginnings of what is related to each answer of a query; of a document once a query, with the best answer."""
    rows = ranked.filter(pl.col("related").list.len() > 0).select("query_id", "document_id", "related")
    if rows.is_empty():
        return {}
    pairs = (
        rows.explode("related")
        .with_columns(related=pl.col("related").struct.field("document_id"))
        .unique(["query_id", "related"], keep="first", maintain_order=True)
        .join(documents.select("document_id", "text"), left_on="related", right_on="document_id", maintain_order="left")
    )
    beside: dict[tuple[str, str], tuple[str, ...]] = {}
    for query_id, document_id, text in pairs.select("query_id", "document_id", "text").iter_rows():
        beginning = first_units(text, _RELATED_UNITS, "dropped")
        beside[query_id, document_id] = (*beside.get((query_id, document_id), ()), beginning)
    return beside


def with_mentions(
    asks: Sequence[ContextRequest], assembly: Assembly, store: Store, conversation_id: str, incidents: Counter[str]
) -> list[ContextRequest]:
    """The asks with what users and assistants said in the conversation of the names that each prompt has, where the
    assembly looks names up."""
    named = [assembly.names(ask.prompt) if isinstance(assembly, LooksUp) else [] for ask in asks]
    if not any(named):
        return list(asks)
    found: dict[str, list[Mention]] = {}
    with store.reading() as connection:
        conversation = active_conversation(connection, conversation_id)
        within = SearchBounds(() if conversation is None else (conversation,), limit=_MENTIONS)
        for name in {name for names in named for name in names}:
            hits = find(connection, WORDS, f'"{name}"', within, "time", keeps_phrases=True, incidents=incidents)
            said = messages_by_number(connection, [number for number, _ in hits])
            found[name] = [Mention(one.message_id, one.text) for one in said if one.role in ("user", "assistant")]
    return [
        ask._replace(mentions={name: found[name] for name in names}) for ask, names in zip(asks, named, strict=True)
    ]


class Memory:
    """One workspace of a memory system: messages go in, documents and contexts come out.

    The store is the truth. The indexes hold its documents and follow from it: each process has its own, so one
    process at a time should write to a workspace while others hold it open for searching.
    """

    def __init__(
        self,
        system: System,
        store: Store,
        path: Path | None = None,
        indexes_beside: Path | None = None,
        live: LiveDocuments | None = None,
    ) -> None:
        """
        Args:
            path: the workspace's file, beside which its indexes are kept; None = it is in this process alone.
            indexes_beside: another file that they are beside.
            live: the documents of the store, where they were opened before for a system that differs in nothing but
                its ranking and its assembly; None = they are read.
        """
        self.system = system
        self.store = store
        incidents = Counter[str]() if live is None else live.incidents
        self._preparer = MessagePreparer(system.session, system.token_estimator, system.assembly.rendered, incidents)
        self._authored = system.authored.nodes(incidents=incidents)
        if put_authored(store, self._authored, system.assembly) or live is None:
            indexes = Indexes(system.embedder, system.vector_index, system.text_index, incidents=incidents)
            live = LiveDocuments(store, indexes, incidents, indexes_beside or path)
        self.live = live
        self.incidents = incidents
        """What failed and was survived, by name and times."""
        self._path = path
        self.compaction = ConversationCompaction(system, store, incidents)
        self._of_messages = MessageDocuments(system, live)
        self._of_folded = FoldedDocuments(system, live)
        self.catch_up()

    @classmethod
    def open(cls, system: System, path: Path | str = ":memory:") -> Self:
        """Open the workspace in the SQLite file `path`, made if missing; "" is a temporary file of this process.

        Its indexes come from the files that `close` left beside it, where these still fit; else they are made from it.
        """
        return cls(system, Store(path), None if str(path) in (":memory:", "") else Path(path))

    @classmethod
    def open_copy(cls, system: System, path: Path) -> Self:
        """Open a copy of the workspace in a file, in this process alone: the file stays as it is."""
        return cls(system, Store.copied_from(path), indexes_beside=path)

    def close(self) -> None:
        """Write what compaction in the background makes in time, keep the indexes beside the file, then close it."""
        try:
            self.compaction.close()
            if self._path is not None:
                self.live.indexes.save(self._path, self.live.frame)
        finally:
            self.store.close()

    def copy_to(self, path: Path) -> None:
        """Keep the workspace as it is now in a new file, its indexes beside it: `Memory.open` goes on from there."""
        self.store.copy_to(path)
        self.live.indexes.copy_to(path, self.live.frame)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ingest(self, transcript: Transcript) -> int:
        """Take in a transcript, or what is new of it; returns how many messages were new.

        Documents are made of the new messages and written to the scope of the agent that the conversation id names,
        if it is a session key; admission and deduplication compare them with what that agent may read. Of a session
        that the session rules leave out nothing is taken in.
        """
        return self.ingest_all([transcript])

    def ingest_all(self, transcripts: Sequence[Transcript]) -> int:
        """`ingest` of transcripts, one after another; returns how many messages were new.

        Where no document is compared with another, many are one transaction: what is there afterwards is the same.
        """
        is_compared = not (contract_of(self.system.admission).is_off and contract_of(self.system.deduplication).is_off)
        added, batch, held = 0, list[Transcript](), 0
        for transcript in transcripts:
            if self.system.session.writes(transcript.conversation_id, transcript.conversation_id):
                batch.append(transcript)
                held += len(transcript.messages)
            if is_compared or held >= _MESSAGES_A_TRANSACTION:
                added += self._ingest(batch)
                batch, held = [], 0
        return added + self._ingest(batch)

    def _ingest(self, transcripts: Sequence[Transcript]) -> int:
        if not transcripts:
            return 0
        system, total = self.system, 0
        with self.live.writing() as changes:
            for transcript in transcripts:
                heard = replace(transcript, messages=tuple(map(self._preparer.prepared, transcript.messages)))
                added = self.store.ingest(heard, system.token_estimator, system.assembly.rendered)
                if added:  # before the commit: what cannot be embedded is not taken in
                    name = transcript.conversation_id
                    changes.append(self._of_messages.make(name, self.store.extracted(name)[name]))
                total += added
        return total

    def dream(self, diary: str, source: str, user_id: str, promoted_at: datetime, scope: str) -> Promotion:
        """Keep what a dream diary holds, in the place of what it held before; see `lcm.writing.dream`."""
        with self.live.writing() as changes:
            made = promote(self.store, self.system.token_estimator, diary, source, user_id, scope, promoted_at)
            windows = self.live.indexes.embed([document.text for document in made.documents])
            of_each = {document.document_id: rows for document, rows in zip(made.documents, windows, strict=True)}
            changes.append(DocumentChange(of_each, [document_id for document_id, _ in made.ended]))
        return made

    def take_turn(
        self, conversation_id: str, messages: Sequence[Message], live_tokens: int = 0, clock: Clock | None = None
    ) -> CompactionReport:
        """Put a turn behind a conversation, then compact a little, if a trigger says so, as of its last message.

        Documents are made of it by `catch_up`, before anything is asked.

        Args:
            conversation_id: made if it is not there.
            messages: at least one.
            live_tokens: what the host counts in its own context.
            clock: seconds that only rise, `time.monotonic`, of a live session. Without one, time is that of a replay:
                compaction has no time limit, or takes as long as an asynchronous `scheduling` simulates.
        """
        if not messages:
            raise ValueError(f"a turn of conversation {conversation_id!r} must hold a message")
        system = self.system
        if not system.session.writes(conversation_id, conversation_id):
            return CompactionReport(conversation_id, False, "session excluded", 0, 0)
        with self.store.serialised(conversation_id):
            stored = self._preparer.append(self.store, conversation_id, messages)
            if system.session.prune_heartbeat_turns:
                hide_heartbeats(self.store, conversation_id, stored)
            if system.compaction.reads_admission:
                self.catch_up()
            return self.compaction.after_turn(conversation_id, live_tokens, clock)

    def catch_up(self) -> None:
        """Make documents of what has been said, folded and protected since they were last made."""
        for conversation_id in self.store.extracted():
            with self.live.writing() as changes:
                extracted = self.store.extracted(conversation_id).get(conversation_id)
                if extracted is not None:  # else another process was faster
                    changes.append(self._of_messages.make(conversation_id, extracted))
        self._of_folded.make()

    def compact(
        self,
        conversation_ids: Sequence[str] | None = None,
        *,
        is_forced: bool = False,
        target_tokens: int | None = None,
        clock: Clock | None = None,
    ) -> list[CompactionReport]:
        """Compact all that can be in conversations, side by side, as of the last message of each.

        Args:
            conversation_ids: None = all.
            is_forced: also where no trigger says so.
            target_tokens: until the context costs no more; None = as the triggers say.
            clock: seconds that only rise, `time.monotonic`; without one compaction has no time limit.
        """
        compaction = self.system.compaction
        if isinstance(conversation_ids, str):
            raise ValueError(f"conversation_ids must be a list of ids, got {conversation_ids!r}")
        if contract_of(compaction).is_off:
            return []
        if conversation_ids is None:
            conversation_ids = self.store.conversations()["conversation_id"].to_list()
        if compaction.reads_admission or not contract_of(self.system.summary_documents).is_off:
            self.catch_up()  # a summary is asked but once which documents it stands for
        reports = self.compaction.compact(
            conversation_ids, is_forced=is_forced, target_tokens=target_tokens, clock=clock
        )
        self._of_folded.make()
        return reports

    def settle(self) -> list[CompactionReport]:
        """Wait for compaction that is under way in the background, and write what it made."""
        return self.compaction.settle()

    def bootstrap(self, path: Path, now: datetime, session_id: str, session_key: str = "") -> "BootstrapReport":
        """Take in what the file of a live session has more than is stored of it, as the session rules say.

        Documents are made of it by `catch_up`, before anything is asked.

        Args:
            path: of the session, in any format that is read.
            now: dates what is done.
            session_id: of the host.
            session_key: of the conversation; else it goes by the session's id.

        Raises:
            TranscriptError: if the file is not there, or of no known format.
            StoreError: if the store refuses; nothing is changed.
        """
        from lcm.memory.session_bootstrap import bootstrap  # brings in every format

        return bootstrap(self.store, path, self._preparer, now, session_id, session_key)

    def before_reset(self, now: datetime, reason: str, session_id: str, session_key: str = "", **said: Any) -> None:
        """Note in the journal that a host is about to reset a session, and follow it by the session rules: `new` prunes
        its context to the summaries that outlive a session, `reset` begins an empty conversation.

        The note is advice: where it cannot be written, the rules act all the same, and where they leave the session
        out, the note stands all the same.

        Args:
            now: when the host said so.
            reason: `new` or `reset`; any other is noted alone.
            session_id: of the host.
            session_key: of the conversation; else it goes by the session's id.
            said: JSON: what else the host tells (message_count, session_file, workspace ...).
        """
        self._hear(now, "before_reset", session_id, {"reason": reason, "session_key": session_key} | said)

    def session_end(
        self,
        now: datetime,
        reason: str,
        session_id: str,
        session_key: str = "",
        next_session_id: str = "",
        next_session_key: str = "",
        **said: Any,
    ) -> None:
        """Note likewise that a session has ended, archive its conversation and begin the next one, unless the reason is
        `deleted`, or one after which it carries on."""
        following = {"next_session_id": next_session_id, "next_session_key": next_session_key}
        self._hear(now, "session_end", session_id, {"reason": reason, "session_key": session_key} | following | said)

    def _hear(self, now: datetime, hook: str, session_id: str, fields: Mapping[str, Any]) -> None:
        known = {entry.entry_id for entry in self.journal(session_id)}
        base = f"{hook}:{session_id}:{(now - EPOCH) // timedelta(milliseconds=1)}"
        entry_id, number = base, 0
        while entry_id in known:
            number += 1
            entry_id = f"{base}#{number}"
        self.note_lifecycle(JournalEntry(entry_id, now, hook, session_id, {k: v for k, v in fields.items() if v != ""}))
        follow_host(self.store, self.system.session, now, hook, session_id, fields)

    def note_lifecycle(self, entry: JournalEntry) -> None:
        """Keep what the host says of a session. It is advice: where it cannot be kept, nothing else fails."""
        try:
            with self.store.writing() as connection:
                add_entry(connection, entry, self.system.session.journal_max_entries)
        except (sqlite3.Error, StoreError) as error:
            _log.warning("the journal could not be written: %s", error)
            self.incidents["journal entries lost"] += 1

    def journal(self, session_id: str | None = None) -> list[JournalEntry]:
        """What hosts said of one session, or of all, oldest first; none where it cannot be read."""
        try:
            with self.store.reading() as connection:
                return read_entries(connection, session_id)
        except sqlite3.Error as error:
            _log.warning("the journal could not be read: %s", error)
            return []

    def assemble(self, conversation_id: str, asks: Sequence[ContextRequest]) -> list[Context]:
        """Pack the context of a conversation for each ask: what a model would be shown now.

        Where the assembly shows documents, an ask names those recalled for it: `recalled` gives them.
        """
        assembly, items = self.system.assembly, self.store.context_records(conversation_id)
        asks = with_mentions(asks, assembly, self.store, conversation_id, self.incidents)
        return assembly.assemble(items, asks, self._authored)

    def context(self, query: Query, budget_tokens: int) -> Context:
        """The context that a model is shown before it answers `query`, which names its conversation.

        Where the query names no scopes, documents are recalled from those that the conversation reads.

        Raises:
            ValueError: if it names none, or asks before the conversation's last message: what compaction has made of a
                conversation since cannot be unmade.
        """
        if not isinstance(budget_tokens, int) or budget_tokens < 1:
            raise ValueError(f"budget_tokens must be a whole number >= 1, got {budget_tokens!r}")
        if query.conversation_id is None:
            raise ValueError(f"query {query.query_id!r} must name the conversation whose context is asked for")
        if query.asked_at < (last := self.store.last_said(query.conversation_id)):
            raise ValueError(
                f"query {query.query_id!r} is asked at {query.asked_at.isoformat()}, before the last message of its "
                f"conversation at {last.isoformat()}: a context is as of now; replay the transcript up to the question"
            )
        assembly, items = self.system.assembly, self.store.context_records(query.conversation_id)
        ask = ContextRequest(budget_tokens, query.text, asked_at=query.asked_at)
        [ask] = with_mentions([ask], assembly, self.store, query.conversation_id, self.incidents)
        if assembly.shows_documents:
            if isinstance(assembly, ShowsTail):
                tail = assembly.tail_message_ids(items, budget_tokens, self._authored, query.text)
                query = replace(query, shown_message_ids=(*query.shown_message_ids, *tail))
            ask = ask._replace(recalled=self.recalled(self.recall([query])).get(query.query_id, ()))
        return assembly.assemble(items, [ask], self._authored)[0]

    def recalled(self, ranked: pl.DataFrame) -> dict[str, tuple[Recalled, ...]]:
        """What `rank` answered, as an assembly takes it: by query id, best first."""
        return recalled_by_query(ranked, self.documents)

    def rank(
        self,
        queries: Sequence[Query],
        ranking: Ranker | None = None,
        vectors: Vectors | None = None,
        acted: Counter[str] | None = None,
    ) -> pl.DataFrame:
        """Answer queries: rows of `RANKED_SCHEMA`, rank 1-based; queries in the order given.

        Args:
            queries: of this workspace; each sees what existed when it was asked, in the scopes that it may read.
            ranking: another ranking than the system's own.
            vectors: the embedded queries, where the caller has them already.
            acted: counts which slots of the ranking changed an answer, which costs time; None = nobody asks.
        """
        ranking = ranking or self.system.ranking
        return self.rank_batches(self.batches(queries, ranking, vectors), queries, ranking, acted)

    def rank_batches(
        self, batches: Sequence[Batch], queries: Sequence[Query], ranking: Ranker, acted: Counter[str] | None = None
    ) -> pl.DataFrame:
        """`rank`, of queries that were put into batches before."""
        frames = [ranking.rank(replace(one, acted=acted, incidents=self.incidents)) for one in batches]
        return in_order(frames, queries)

    def batches(
        self, queries: Sequence[Query], ranking: Ranker | None = None, vectors: Vectors | None = None
    ) -> list[Batch]:
        """What a ranking is asked: queries with the documents and indexes that they may see; arguments as of `rank`."""
        needs_vectors = contract_of(ranking or self.system.ranking).needs_vectors
        embedder = self.system.embedder if needs_vectors else None
        return query_batches(self.live, queries, self.system.scopes, embedder, vectors)

    def recall(self, queries: Sequence[Query], acted: Counter[str] | None = None) -> pl.DataFrame:
        """Answer queries one after another, in the order given, as an agent's memory does: what an answer shows counts
        as used, and use shapes the answers that follow. With frozen reinforcement it is `rank`, as is `acted`.
        """
        reinforcement = self.system.reinforcement
        if not reinforcement.recalled:
            return self.rank(queries, acted=acted)
        check(queries)
        answers = [pl.DataFrame(schema=RANKED_SCHEMA)]
        for query in queries:
            answers.append(self.rank([query], acted=acted))
            used = answers[-1]["document_id"].head(reinforcement.recalled).to_list()
            readable = self.live.timeline.visible(query.asked_at, readable_scopes(query, self.system.scopes))
            use = reinforcement.after_recall(used, readable, query.asked_at)
            self.store.update_use(use)
            self.live.note_use(use)
        return pl.concat(answers)

    def trace(self, queries: Sequence[Query]) -> pl.DataFrame:
        """Why each document was returned: `Ranking.trace` for these queries."""
        ranking = self.system.ranking
        traces = [ranking.trace(batch) for batch in self.batches(queries)]
        return pl.concat([pl.DataFrame(schema=TRACE_SCHEMA), *traces])

    def search(
        self, text: str, asked_at: datetime, scopes: Sequence[str] | None = None, agent: str | None = None
    ) -> pl.DataFrame:
        """Answer one question: `rank` with the documents' columns beside, best first. `recall` is what counts use.

        Args:
            text: what is asked.
            asked_at: when; nothing later is seen.
            scopes: which scopes the asker may read; None = those of `agent`, and without one all.
            agent: whose accessible scopes to read: an id, or a session key that names one.
        """
        query = Query("query", text, asked_at, scopes=self.identity(agent, scopes=scopes).scopes)
        ranked = self.rank([query]).drop("query_id")
        seen = self.documents.with_columns(invalidated_at=pl.lit(None, pl.Datetime("ms", "UTC")))  # not by then
        return ranked.join(seen, on="document_id", how="left", maintain_order="left")

    def identity(
        self,
        agent_id: str | None = None,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        scopes: Sequence[str] | None = None,
    ) -> Identity:
        """Who asks, by the host's word: `lcm.memory.scopes.identified` by the rules of this system."""
        return identified(self.system.scopes, agent_id, user_id=user_id, session_id=session_id, scopes=scopes)

    def history(self, document_id: str, scopes: Sequence[str] | None = None) -> list[Document]:
        """The documents in whose place one came to stand, itself, and those that followed it, oldest first.

        Args:
            document_id: one of them.
            scopes: the scopes that may be read; None = all.
        """
        return self.store.history(document_id, scopes)

    @property
    def documents(self) -> pl.DataFrame:
        """Every document by `valid_from`, those that have ended too, then what the ranking brings itself."""
        own, ranking = self.live.frame, self.system.ranking
        return pl.concat([own, ranking.brought]) if isinstance(ranking, BringsDocuments) else own
