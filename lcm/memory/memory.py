"""Memory: one workspace of a memory system, wired from its parts."""

import logging
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Self

import numpy as np
import polars as pl

from lcm.clock import END_OF_CLOCKS, EPOCH
from lcm.compaction.lockstep import Clock, in_lockstep, run
from lcm.compaction.window import StoredWindow
from lcm.encoding import well_formed
from lcm.errors import LcmError, StoreError
from lcm.memory.comparison_set import ComparisonSet
from lcm.memory.document_timeline import DocumentTimeline
from lcm.memory.ingest_plan import arrive, dated, write
from lcm.memory.scopes.scopes import parse_agent_id
from lcm.memory.session.preparer import MessagePreparer
from lcm.memory.system import System
from lcm.protocols import (
    Ask,
    Batch,
    CountsIncidents,
    Ranker,
    ShowsTail,
    TextIndex,
    VectorIndex,
    Vectors,
)
from lcm.records import (
    AuthoredNode,
    Candidate,
    CompactionReport,
    Context,
    Document,
    JournalEntry,
    Message,
    Query,
    Recalled,
    Shard,
    Summary,
    Transcript,
)
from lcm.retrieval.indexes import Indexes, embedded_texts, mean_vector
from lcm.retrieval.ranking.pipeline import RANKED_SCHEMA, TRACE_SCHEMA
from lcm.store.guidance import drop_documents, put_nodes, read_nodes, read_undocumented_shards
from lcm.store.journal import add_entry, read_entries
from lcm.store.lineage import messages_beneath
from lcm.store.store import Store
from lcm.store.summaries import undocumented
from lcm.writing.admission.intake import Intake
from lcm.writing.dream.promotion import Promotion, in_sight, promote
from lcm.writing.dream.query import asks_for_dreams
from lcm.writing.new_document import document_of_node, document_of_shard

_log = logging.getLogger(__name__)


class Memory:
    """One workspace: what was said in it, and what can be found again.

    The store is the truth. The indexes hold its documents and are made from it whenever a workspace is opened, so one
    process at a time should write to a workspace while others hold it open for searching.
    """

    def __init__(
        self, system: System, store: Store, path: Path | None = None, vectors_beside: Path | None = None
    ) -> None:
        """
        Args:
            path: the workspace's file, beside which the vectors are kept; None = it is in this process alone.
            vectors_beside: another file that they are beside.
        """
        self.system = system
        self.store = store
        self.incidents: Counter[str] = Counter()
        """What failed and was survived, by name and times."""
        self._path = path
        self._preparer = MessagePreparer(system.session, system.token_estimator, system.assembly.wording)
        self._windows: dict[str, StoredWindow] = {}
        self._survived = self._reported()
        self.indexes = Indexes(system.embedder, system.vector_index, system.text_index)
        self._authored = self._author(system.authored.nodes())
        if isinstance(system.authored, CountsIncidents):
            self.incidents += Counter(system.authored.incidents)
        self._compared: tuple[Sequence[str] | None, ComparisonSet] | None = None
        self._heard: tuple[str, list[Message]] = ("", [])
        self._version = store.written_elsewhere()
        self._known = DocumentTimeline(store.documents())
        if self._known.sanitised:
            _log.warning("%d documents had ratings that are no number: 0.7 stands in for them", self._known.sanitised)
            self.incidents["ratings that are no number"] += self._known.sanitised
        self.indexes.fill(self._known.frame, vectors_beside or path)
        self.catch_up()

    @classmethod
    def open(cls, system: System, path: Path | str = ":memory:") -> Self:
        """Open the workspace in the SQLite file `path`, made if missing.

        Its indexes are rebuilt from it; the vectors come from the file that `close` left beside it, where that still
        fits.
        """
        return cls(system, Store(path), None if str(path) == ":memory:" else Path(path))

    @classmethod
    def open_copy(cls, system: System, path: Path) -> Self:
        """Open a copy of the workspace in a file, in this process alone: the file stays as it is."""
        return cls(system, Store.copied_from(path), vectors_beside=path)

    def close(self) -> None:
        """Keep the vectors beside the workspace's file, then close it."""
        if self._path is not None:
            self.indexes.save(self._path)
        self.store.close()

    def copy_to(self, path: Path) -> None:
        """Keep the workspace as it is now in a new file, the vectors beside it: `Memory.open` goes on from there."""
        self.store.copy_to(path)
        self.indexes.copy_to(path)

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
        system = self.system
        if not system.session.writes(transcript.conversation_id, transcript.conversation_id):
            return 0
        transcript = replace(transcript, messages=tuple(map(self._preparer.prepared, transcript.messages)))
        with self.store.transaction():
            self._follow()
            added = self.store.ingest(transcript, system.token_estimator, system.assembly.wording)
            if not added:
                return 0
            # Before the commit: what cannot be embedded is not taken in.
            change = self._extract(transcript.conversation_id, self.store.extracted()[transcript.conversation_id])
        self._grow(*change)
        return added

    def dream(self, diary: str, source: str, user_id: str, promoted_at: datetime, scope: str) -> Promotion:
        """Keep what a dream diary holds, in the place of what it held before; see `lcm.writing.dream.promotion`."""
        with self.store.transaction():
            self._follow()
            made = promote(self.store, self.system.token_estimator, diary, source, user_id, scope, promoted_at)
            windows = self.indexes.embed([document.text for document in made.documents])
        self._grow({document.document_id: rows for document, rows in zip(made.documents, windows, strict=True)})
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
            clock: seconds that only rise, `time.monotonic`; without one compaction has no time limit.
        """
        if not messages:
            raise ValueError(f"a turn of conversation {conversation_id!r} must hold a message")
        system = self.system
        if not system.session.writes(conversation_id, conversation_id):
            return CompactionReport(conversation_id, False, "session excluded", 0, 0)
        with self.store.serialised(conversation_id):
            self._preparer.append(self.store, conversation_id, messages)
            if system.compaction.reads_admission:
                self.catch_up()
            window = self._window(conversation_id)
            work = system.compaction.after_turn(window, self.store.last_said(conversation_id), live_tokens)
            return self._counted(run(work, system.compaction.summarizer, clock))

    def catch_up(self) -> None:
        """Make documents of what has been said, folded and protected since they were last made."""
        for conversation_id in self.store.extracted():
            with self.store.transaction():
                self._follow()
                extracted = self.store.extracted().get(conversation_id)
                if extracted is None:  # another process was faster
                    continue
                change = self._extract(conversation_id, extracted)
            self._grow(*change)
        self._find_folded()

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
        if compaction.is_off:
            return []
        if conversation_ids is None:
            conversation_ids = self.store.conversations()["conversation_id"].to_list()
        if compaction.reads_admission or not self.system.summary_documents.is_off:
            self.catch_up()  # a summary is asked but once which documents it stands for
        works = (
            compaction.compact(
                self._window(conversation_id),
                self.store.last_said(conversation_id),
                is_forced=is_forced,
                target_tokens=target_tokens,
            )
            for conversation_id in conversation_ids
            if self.system.session.writes(conversation_id, conversation_id)
        )
        reports = [self._counted(report) for report in in_lockstep(works, compaction.summarizer, clock=clock)]
        self._find_folded()
        return reports

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

    def assemble(self, conversation_id: str, asks: Sequence[Ask]) -> list[Context]:
        """Pack the context of a conversation for each ask: what a model would be shown now.

        Where the assembly shows documents, an ask names those recalled for it: `recalled` gives them.
        """
        return self.system.assembly.assemble(self.store.context_records(conversation_id), asks, self._authored)

    def context(self, query: Query, budget_tokens: int) -> Context:
        """The context that a model is shown before it answers `query`, which names its conversation.

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
        conversation_id, assembly = query.conversation_id, self.system.assembly
        recalled: Sequence[Recalled] = ()
        if assembly.shows_documents:
            if isinstance(assembly, ShowsTail):
                items = self.store.context_records(conversation_id)
                tail = assembly.tail_message_ids(items, budget_tokens, self._authored, query.text)
                query = replace(query, shown_message_ids=(*query.shown_message_ids, *tail))
            recalled = self.recalled(self.recall([query])).get(query.query_id, ())
        return self.assemble(conversation_id, [Ask(budget_tokens, query.text, recalled, query.asked_at)])[0]

    def recalled(self, ranked: pl.DataFrame) -> dict[str, tuple[Recalled, ...]]:
        """What `rank` answered, as an assembly takes it: by query id, best first."""
        columns = (
            "query_id", "document_id", "text", "kind", "source_message_ids", "created_at", "score", "cosine", "role",
            "scope_class", "confidence", "index_tier", "is_recovered",
        )  # fmt: skip
        rows = ranked.join(self.documents, on="document_id", how="left", maintain_order="left").select(columns)
        found: dict[str, list[Recalled]] = {}
        for query_id, document_id, text, kind, sources, created_at, score, cosine, role, *rest in rows.iter_rows():
            one = Recalled(
                document_id, text, kind, tuple(sources), created_at, score or 0.0, cosine or 0.0, role or "", *rest
            )
            found.setdefault(query_id, []).append(one)
        return {query_id: tuple(documents) for query_id, documents in found.items()}

    def rank(
        self, queries: Sequence[Query], ranking: Ranker | None = None, vectors: Vectors | None = None
    ) -> pl.DataFrame:
        """Answer queries: rows of `RANKED_SCHEMA`, rank 1-based; queries in the order given.

        Args:
            queries: of this workspace; each sees what existed when it was asked, in the scopes that it may read.
            ranking: another ranking than the system's own.
            vectors: the embedded queries, where the caller has them already.
        """
        ranking = ranking or self.system.ranking
        frames = [ranking.rank(batch) for batch in self._batches(queries, ranking, vectors)]
        if not frames:
            return pl.DataFrame(schema=RANKED_SCHEMA)
        if len(frames) == 1:
            return frames[0]
        order = pl.DataFrame({"query_id": [query.query_id for query in queries]}).with_row_index("position")
        return (
            pl.concat(frames)
            .join(order, on="query_id", how="left", maintain_order="left")
            .sort("position", maintain_order=True)
            .drop("position")
        )

    def recall(self, queries: Sequence[Query]) -> pl.DataFrame:
        """Answer queries one after another, in the order given, as an agent's memory does: what an answer shows counts
        as used, and use shapes the answers that follow. With frozen reinforcement it is `rank`.
        """
        reinforcement = self.system.reinforcement
        if not reinforcement.recalled:
            return self.rank(queries)
        _check(queries)
        answers = [pl.DataFrame(schema=RANKED_SCHEMA)]
        for query in queries:
            answers.append(self.rank([query]))
            used = answers[-1]["document_id"].head(reinforcement.recalled).to_list()
            readable = self._known.visible(query.asked_at)
            if query.scopes is not None:
                readable = readable.filter(pl.col("scope").is_in(list(query.scopes)))
            use = reinforcement.after_recall(used, readable, query.asked_at)
            self.store.update_use(use)
            self._known = self._known.with_use(use)
            if self._compared is not None:
                self._compared[1].reread(use["document_id"].to_list())
        return pl.concat(answers)

    def trace(self, queries: Sequence[Query]) -> pl.DataFrame:
        """Why each document was returned: `Ranking.trace` for these queries."""
        ranking = self.system.ranking
        traces = [ranking.trace(batch) for batch in self._batches(queries, ranking, None)]
        return pl.concat([pl.DataFrame(schema=TRACE_SCHEMA), *traces])

    def search(
        self, text: str, asked_at: datetime, scopes: Sequence[str] | None = None, agent: str | None = None
    ) -> pl.DataFrame:
        """Answer one question: `rank` with the documents' columns beside, best first. `recall` is what counts use.

        What a host's `memory_search` asks, from Python; requests as a host sends them go to
        `lcm.plugins.libravdb.memory_search.Bridge.search`.

        Args:
            text: what is asked.
            asked_at: when; nothing later is seen.
            scopes: which scopes the asker may read; None = those of `agent`, and without one all.
            agent: whose accessible scopes to read: an id, or a session key that names one.
        """
        if isinstance(scopes, str):
            raise ValueError(f"scopes must be a list of scopes, got {scopes!r}")
        if agent is not None and not agent.strip():
            raise ValueError(f"agent must be an id, got {agent!r}; None reads every scope")
        if scopes is None:
            scopes = self.system.scopes.readable(parse_agent_id(agent) or agent if agent else None)
        query = Query("query", text, asked_at, scopes=None if scopes is None else tuple(scopes))
        ranked = self.rank([query]).drop("query_id")
        seen = self.documents.with_columns(invalidated_at=pl.lit(None, pl.Datetime("ms", "UTC")))  # not by then
        return ranked.join(seen, on="document_id", how="left", maintain_order="left")

    def history(self, document_id: str, scopes: Sequence[str] | None = None) -> list[Document]:
        """The documents in whose place one came to stand, itself, and those that followed it, oldest first.

        Args:
            document_id: one of them.
            scopes: the scopes that may be read; None = all.
        """
        return self.store.history(document_id, scopes)

    @property
    def vector_index(self) -> VectorIndex:
        return self.indexes.vector_index

    @property
    def text_index(self) -> TextIndex:
        """The one over every scope."""
        return self.indexes.text_index(None)

    @property
    def documents(self) -> pl.DataFrame:
        """Every document by `valid_from`, those that have ended too; columns as the store names them."""
        return self._known.frame

    def _window(self, conversation_id: str) -> StoredWindow:
        window = self._windows.get(conversation_id)
        if window is None:
            window = self._windows[conversation_id] = StoredWindow(self.store, conversation_id)
        else:
            window.follow()
        return window

    def _counted(self, report: CompactionReport) -> CompactionReport:
        if report.failure:
            self.incidents[f"compaction failed: {report.failure}"] += 1
        survived = self._reported()
        self.incidents += survived - self._survived
        self._survived = survived
        return report

    def _reported(self) -> Counter[str]:
        """What compaction and its summarizer have survived so far, here and in other memories of the same system."""
        compaction, survived = self.system.compaction, Counter[str]()
        for part in (compaction, compaction.summarizer):
            if isinstance(part, CountsIncidents):
                survived += Counter(part.incidents)
        return survived

    def _batches(self, queries: Sequence[Query], ranking: Ranker, vectors: Vectors | None) -> list[Batch]:
        _check(queries)
        error = None
        if vectors is None or not ranking.needs_vectors:
            vectors = np.empty((len(queries), 0), dtype=np.float32)
            if ranking.needs_vectors:
                try:
                    vectors = self.system.embedder.embed([well_formed(query.text) for query in queries], "query")
                except LcmError as cause:  # the source says whether it can do without
                    error = cause
        groups: dict[tuple[object, ...], list[int]] = {}
        by_session = not self._known.frame["is_durable"].all()
        for position, query in enumerate(queries):
            session = (query.session_id, query.conversation_id) if by_session else None
            moment = self._known.moment(query.asked_at)
            about_dreams = asks_for_dreams(query.text)
            key = (moment, query.scopes, query.only_category, query.shown_message_ids, session, about_dreams)
            groups.setdefault(key, []).append(position)
        return [
            self._batch([queries[i] for i in positions], vectors[positions], error) for positions in groups.values()
        ]

    def _batch(self, queries: Sequence[Query], vectors: Vectors, error: LcmError | None) -> Batch:
        """Queries of one moment, with the same scopes and category, that are shown the same, and all about dreams or
        none; of one session too, where some documents are not durable."""
        first = queries[0]
        if first.scopes is None:
            documents = self._known.visible(first.asked_at)
        else:
            documents = DocumentTimeline(self.store.documents(first.scopes, known_at=first.asked_at)).frame
        documents = in_sight(pl.concat([documents, self._folded(first)]), first.text)
        if first.only_category is not None:
            documents = documents.filter(category=first.only_category)
        if first.shown_message_ids:
            shown = pl.lit(pl.Series([list(first.shown_message_ids)])).first()
            hidden = pl.col("source_message_ids").list.set_difference(shown).list.len() == 0
            documents = documents.filter(~hidden | (pl.col("source_message_ids").list.len() == 0))
        # Behind a summary, or another session's: no answer, but turns that recovery may fetch.
        has_ended = pl.col("invalidated_at").fill_null(END_OF_CLOCKS) <= first.asked_at
        turns, documents = documents.filter(has_ended), documents.filter(~has_ended)
        if not documents["is_durable"].all():
            own = (
                pl.col("session_id") == first.session_id
                if first.session_id is not None
                else pl.col("conversation_id") == (first.conversation_id or "")
            )
            turns = pl.concat([turns, documents.filter(~pl.col("is_durable") & ~own)])
            documents = documents.filter(pl.col("is_durable") | own)
        everything = len(documents) == len(self._known.frame)
        return Batch(
            queries=pl.DataFrame(
                [
                    pl.Series("query_id", [query.query_id for query in queries], pl.String),
                    pl.Series("text", [well_formed(query.text) for query in queries], pl.String),
                    pl.Series("asked_at", [query.asked_at for query in queries], pl.Datetime("ms", "UTC")),
                    pl.Series("conversation_id", [query.conversation_id for query in queries], pl.String),
                    pl.Series("session_id", [query.session_id for query in queries], pl.String),
                    pl.Series("caller", [query.caller for query in queries], pl.String),
                ]
            ),
            vectors=vectors,
            documents=documents,
            allowed=None if everything else documents["document_id"].to_list(),
            vector_index=self.indexes.vector_index,
            text_index=self.indexes.text_index(None if everything else first.scopes),
            document_vectors=self.indexes.vector_index.vectors_of,
            embedding_error=error,
            incidents=self.incidents,
            scopes=first.scopes,
            is_in_session=bool(first.shown_message_ids),
            turns=None if turns.is_empty() else turns,
        )

    def _folded(self, query: Query) -> pl.DataFrame:
        """The documents of messages that a query may read, and that have ended without another in their place: they
        stand behind a summary."""
        begun, ended = self._known.moment(query.asked_at)
        if not ended:
            return self._known.frame.clear()
        known = self._known.frame.head(begun)
        found = known.filter(
            pl.col("kind") == "message",
            pl.col("invalidated_at") <= query.asked_at,
            ~pl.col("document_id").is_in(known["supersedes"].drop_nulls().implode()),
        )
        return found if query.scopes is None else found.filter(pl.col("scope").is_in(list(query.scopes)))

    def _extract(self, conversation_id: str, extracted: int) -> tuple[dict[str, Vectors], list[str]]:
        """Make documents of the messages after `extracted`, inside the caller's transaction.

        Returns:
            The window vectors of every new document, by id, and the ids of those that end: what `_grow` takes.
        """
        system = self.system
        messages, unset = self._said(conversation_id, extracted)
        new = {message.message_id for message in messages[extracted:]}
        if late := [message_id for message_id in unset if message_id in new]:
            _log.warning(
                "%d messages from %s on are dated by no set clock, so by what stands before", len(late), late[0]
            )
            self.incidents["messages dated by no set clock"] += len(late)
        agent = parse_agent_id(conversation_id)
        scope = system.scopes.default_write(agent)
        candidates = self._candidates(messages, extracted, scope, agent)
        intake = Intake(system.admission, system.deduplication)
        # Who has no name is compared with what is written beside it, not with everybody's secrets.
        readable = (scope,) if agent is None else system.scopes.readable(agent)
        plan = arrive(conversation_id, messages, candidates, intake, self.indexes, lambda: self._comparable(readable))
        tokens = system.token_estimator.count([document.text for document in plan.documents])
        write(plan, conversation_id, self.store, tokens)
        self.store.set_extracted(conversation_id, len(messages))
        self.incidents += plan.incidents
        changed = [document_id for document_id, _ in (*plan.ends, *plan.notes)]
        return plan.windows, changed

    def _said(self, conversation_id: str, extracted: int) -> tuple[list[Message], list[str]]:
        """`dated` messages of a conversation, of which the first `extracted` are read again only where others were
        asked for in between; and the ids of those after them that are dated by no set clock."""
        known_id, messages = self._heard
        del messages[extracted:]
        read = self.store.messages(conversation_id, max(extracted, 1))
        if extracted == 0 or not (
            known_id == conversation_id
            and len(messages) == extracted
            and read[0].message_id == messages[-1].message_id  # no other conversation has taken its name
        ):
            messages, unset = dated(self.store.messages(conversation_id) if extracted else read)
        else:
            found, unset = dated([messages[-1], *read[1:]])
            messages += found[1:]
        self._heard = conversation_id, messages
        return messages, unset

    def _comparable(self, readable: Sequence[str] | None) -> ComparisonSet:
        """The documents of scopes, to compare candidates with and to grow by them."""
        if self._compared is None or self._compared[0] != readable:
            frame = self._known.frame
            if readable is not None:
                frame = frame.filter(pl.col("scope").is_in(list(readable)))
            vectors = self.indexes.vector_index.vectors_of(frame["document_id"].to_list())
            self._compared = readable, ComparisonSet(frame, vectors, self.store.document, readable)
        return self._compared[1].branch()

    def _candidates(
        self, messages: Sequence[Message], extracted: int, scope: str, agent: str | None
    ) -> list[Candidate]:
        """What extraction makes of the messages after `extracted`, to be written to `scope` where it names none.

        Raises:
            StoreError: if it names one that the agent cannot reach.
        """
        extraction = self.system.extraction
        if not isinstance(extraction, CountsIncidents):
            candidates = extraction.extract(messages, extracted)
        else:
            before = Counter(extraction.incidents)
            candidates = extraction.extract(messages, extracted)
            self.incidents += Counter(extraction.incidents) - before
        for named in {candidate.scope for candidate in candidates} - {None, scope}:
            if named is not None and not self.system.scopes.is_accessible(named, agent):
                raise StoreError(
                    f"extraction writes to the scope {named!r}, which {agent or 'a conversation without an agent'} "
                    "cannot reach: name it in scopes.agent_access, or in scopes.definitions"
                )
        return [candidate if candidate.scope else replace(candidate, scope=scope) for candidate in candidates]

    def _author(self, nodes: list[AuthoredNode]) -> list[AuthoredNode]:
        """Let the store hold what is authored, as the files say it now, and documents of what is to be found.

        Raises:
            LcmError: if there is what must be shown, and no context shows it.
        """
        unseen = sum(node.tier != "variant" for node in nodes)
        if unseen and not self.system.assembly.shows_documents:
            raise LcmError(
                f"authored holds {unseen} hard and soft blocks, which this assembly never shows: choose "
                "assembly=continuity, or authored=none"
            )
        with self.store.reading() as connection:
            stored = read_nodes(connection)
        if nodes != stored:
            with self.store.writing() as connection:
                put_nodes(connection, nodes)
                drop_documents(connection, "authored")
                self.store.add_documents([document_of_node(node) for node in nodes if node.tier == "variant"])
        return nodes

    def _find_folded(self) -> None:
        """Make documents of the summaries and protected messages that have none yet."""
        with self.store.reading():
            self._follow()
            shards, summaries = self._undocumented()
        if not shards and not summaries:
            return
        with self.store.transaction():
            self._follow()
            change = self._fold(*self._undocumented())
        self._grow(*change)

    def _undocumented(self) -> tuple[list[Shard], list[Summary]]:
        """The protected messages and the summaries that are to have documents, and have none."""
        with self.store.reading() as connection:
            shards = read_undocumented_shards(connection)
            ids = [] if self.system.summary_documents.is_off else undocumented(connection)
            found = self.store.summaries_by_id(ids)
        return shards, [found[summary_id] for summary_id in ids]

    def _fold(self, shards: Sequence[Shard], summaries: Sequence[Summary]) -> tuple[dict[str, Vectors], list[str]]:
        """Make documents of these, inside the caller's transaction; returns what `_grow` takes."""
        documents: list[Document] = []
        ends: dict[str, datetime] = {}
        for shard in shards:
            document = document_of_shard(shard, self._message(shard.message_id), self._scope(shard.conversation_id))
            documents.append(document)
        for summary in summaries:
            beneath = self._beneath(summary)
            documents.append(
                self.system.summary_documents.document(summary, beneath, self._scope(summary.conversation_id))
            )
            ended = self.system.summary_documents.ended(summary, self._known.frame)
            for document_id in ended:
                ends.setdefault(document_id, summary.created_at)
        windows = self.indexes.embed([document.text for document in documents])
        tokens = self.system.token_estimator.count([document.text for document in documents])
        self.store.add_documents([replace(d, tokens=n) for d, n in zip(documents, tokens, strict=True)])
        self.store.end_documents(list(ends.items()))
        vectors = {document.document_id: rows for document, rows in zip(documents, windows, strict=True)}
        return vectors, list(ends)

    def _message(self, message_id: str) -> Message:
        return self.store.messages_by_id([message_id])[message_id]

    def _scope(self, conversation_id: str) -> str:
        return self.system.scopes.default_write(parse_agent_id(conversation_id))

    def _beneath(self, summary: Summary) -> list[Message]:
        """The messages that a summary leads to, in order."""
        with self.store.reading() as connection:
            ids = messages_beneath(connection, [summary.summary_id])
        found = self.store.messages_by_id(ids)
        return [found[message_id] for message_id in ids]

    def _grow(self, vectors: dict[str, Vectors], changed: Sequence[str] | None = None) -> None:
        """Take the store's new documents into memory and into the indexes.

        Args:
            vectors: of the new documents, by id: one row a window.
            changed: the older documents that have changed, where these are all; None = any may have.
        """
        if changed is None:
            self._read_again(vectors)
            return
        rows = self.store.documents(document_ids=[*vectors, *changed])
        new, is_behind = self._known.follow(rows)
        windows = [vectors[document_id] for document_id in new["document_id"]]
        self.indexes.add(new, windows, self._known.frame)
        if not is_behind:
            self._compared = None
        elif self._compared is not None:
            if windows:
                self._compared[1].add_stored(new, np.concatenate([mean_vector(one) for one in windows]))
            self._compared[1].reread(changed)

    def _follow(self) -> None:
        """Take in the documents that another process has written, before this one compares with them or adds to them.

        Raises:
            StoreError: if it has taken documents away, which the indexes cannot forget.
        """
        version = self.store.written_elsewhere()
        if version != self._version:
            self._read_again({})
            self._heard, self._version = ("", []), version

    def _read_again(self, vectors: dict[str, Vectors]) -> None:
        """Read all documents; those that are new are embedded, where `vectors` lacks them."""
        known = DocumentTimeline(self.store.documents())
        if gone := len(self._known.ids - known.ids):
            raise StoreError(f"another process has removed {gone} documents from the workspace: open it again")
        new = known.frame.filter(~pl.col("document_id").is_in(list(self._known.ids)))
        foreign = new.filter(~pl.col("document_id").is_in(list(vectors)))
        embedded = dict(zip(foreign["document_id"], self.indexes.embed(embedded_texts(foreign)), strict=True))
        windows = [vectors[i] if i in vectors else embedded[i] for i in new["document_id"]]
        self._known, self._compared = known, None
        self.indexes.add(new, windows, known.frame)


def _check(queries: Sequence[Query]) -> None:
    if len({query.query_id for query in queries}) < len(queries):
        raise ValueError("query ids must differ within one call")
    for query in queries:
        if query.asked_at.tzinfo is None:
            raise ValueError(f"asked_at of query {query.query_id!r} needs a time zone, got {query.asked_at!r}")
        if not EPOCH <= query.asked_at < END_OF_CLOCKS:
            raise ValueError(
                f"asked_at of query {query.query_id!r} must lie in the years 1970-2099, got "
                f"{query.asked_at.isoformat()}: is the clock set, and are milliseconds not taken for seconds?"
            )
        if isinstance(query.scopes, str):
            raise ValueError(f"scopes of query {query.query_id!r} must be a list of scopes, got {query.scopes!r}")
