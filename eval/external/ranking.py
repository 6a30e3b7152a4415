"""The ranking of an external memory: a workspace is played to it once, and what it answered is the ranking."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import polars as pl

from eval.cache.stage_cache import Fingerprint, FrameCache, Made, StageCache, Unidentified, content_of, digest
from eval.dataset.dataset import Dataset
from eval.external.reading import LogReading
from eval.external.session import Told, Transport, asked_of_itself, played
from lcm.checks import check_range
from lcm.errors import LcmError
from lcm.memory.system import System
from lcm.protocols.context import ContextRequest
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.records.context import Context
from lcm.records.conversation import Message
from lcm.records.document import AuthoredNode
from lcm.records.summary import Summary


@dataclass(frozen=True, slots=True)
class RecordedContexts:
    """An `Assembly` that has the contexts which were asked for, and lacks all others."""

    contexts: Mapping[tuple[str, datetime | None, int], Context] = field(default_factory=dict)
    """By the words of the query, when it was asked, and the budget."""

    reads_prompts = True
    shows_documents = True

    def rendered(self, message: Message) -> str:
        return message.content

    def lacks(self, ask: ContextRequest) -> bool:
        return _key(ask) not in self.contexts

    def assemble(
        self, items: Sequence[Message | Summary], asks: Sequence[ContextRequest], authored: Sequence[AuthoredNode] = ()
    ) -> list[Context]:
        return [self.contexts[key] for ask in asks if (key := _key(ask)) in self.contexts]


def _key(ask: ContextRequest) -> tuple[str, datetime | None, int]:
    return ask.prompt, ask.asked_at, ask.budget_tokens


_ALONE = (
    "an external memory is played whole workspaces by `lcm evaluate`, and by what compares its runs; nothing else can "
    "ask it: leave measures that play sessions themselves out, as survival and resume, or choose another ranking"
)


@dataclass(frozen=True, slots=True)
class External:
    """Answers with what a memory of others returns, over the contract of docs/external.md.

    The system's other parts keep what was said, message by message: for control arms, and for what is measured.
    """

    transport: Transport
    k: int = 20
    """Texts that a query asks for."""
    revision: str = ""
    """Yours: another word where the memory has changed and neither its command nor its version tells."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The memory's own configuration, JSON, which it is told with every `reset`."""
    add_messages: int = 64
    """Messages that one call adds at most."""
    similarity: float = 0.85
    """From which a stretch of a text nearly repeats a message; rapidfuzz's partial ratio."""

    contract = Contract(asks=())

    def __post_init__(self) -> None:
        check_range(self, "k", "add_messages", ge=1, is_whole=True)
        check_range(self, "similarity", gt=0, le=1)
        if not callable(getattr(self.transport, "open", None)):
            raise TypeError(f"transport must have open(), got {self.transport!r}")

    def played(
        self,
        system: System,
        dataset: Dataset,
        workspace: str,
        *,
        is_per_turn: bool,
        budgets: Sequence[int],
        cache: StageCache | None,
    ) -> System:
        """The system whose ranking and contexts are what the memory gave in one workspace: asked now, or found again.

        What was disturbed by a fault is not kept, and is asked again the next time. Messages are added, and compaction
        asked for, turn by turn or not; contexts are asked for under the budgets that will be read.
        """
        transcripts = [one for one in dataset.transcripts if one.workspace_id == workspace]
        queries = [one for one in dataset.queries if one.workspace_id == workspace]
        about = (
            *(self.revision, self.k, self.add_messages, dataset.digest, workspace),
            *([(query.query_id, query.scopes) for query in queries], is_per_turn, budgets),
        )
        key = None if cache is None else self.identity(self.told(cache), *about)

        def make() -> Made:
            session = played(
                self.transport, workspace, transcripts, queries,
                k=self.k, add_messages=self.add_messages, is_per_turn=is_per_turn, budgets=budgets,
                settings=self.settings,
            )  # fmt: skip
            return session.log, session.noise

        cached = FrameCache(cache).frame("external", key, make, is_kept=lambda log: log["fault"].is_null().all())
        log, noise = cached
        answered = LogReading(log, workspace, dataset, self.k, self.similarity, noise).answered()
        return replace(system, ranking=answered, assembly=RecordedContexts(answered.contexts))

    def told(self, cache: StageCache) -> Told:
        """What the memory says of itself: another version is another memory. Asked once a process."""
        if (key := self.identity()) is None:
            return asked_of_itself(self.transport, self.settings)
        return cache.in_memory("external", key, lambda: (asked_of_itself(self.transport, self.settings), 1))

    def identity(self, *others: object) -> str | None:
        """The digest of how the memory is reached and set, with its code as far as that is named, and of the variables
        that it is given; None where it has none."""
        identity = Fingerprint({__name__, *self.transport.modules})
        variables = {name: _variable(name) for name in getattr(self.transport, "environment", ())}
        try:
            told = [*map(identity.of, (self.transport, self.settings, *others)), variables]
            return digest(told, identity.modules)
        except Unidentified:
            return None

    def rank(self, batch: Batch) -> pl.DataFrame:
        raise LcmError(_ALONE)

    trace = plan = found_by = reasons = rank


def _variable(name: str) -> list[str]:
    """The value of a variable, and what the file says that it names; a folder may be all of HOME."""
    value = os.environ.get(name)
    if value is None:
        return []
    return [value, *(content_of(value) if os.path.isfile(value) else ())]  # noqa: PTH113 - which takes any text
