"""What a measure is: a choice of the group `measures`, that reads one thing of an evaluated run and gives a frame.

It says by its `subject` what it reads, and when:

- `rankings`: a `RunReading`, when all workspaces are done: what an arm ranked;
- `answers`: a `MemoryReading`, whenever a workspace is asked: its memory as queries found it, and what was ranked;
- `memory`: a `MemoryReading`, once a workspace, when that has ingested everything;
- `system`: a `SystemReading`, once, when all workspaces are done: the system itself, beside the dataset.

Rows query_id, measure, value are averaged, shown, logged, compared and tuned by like all others. Further columns of
these are kept in a file of the measure's own name, once a query and arm, as are all other rows. The measure's `section`
stands in the summary under that name: of rows arm, conversation_id, measure, value the means over conversations.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import polars as pl

from eval.dataset.dataset import Dataset
from eval.measures.means import Means
from eval.measures.names import SYSTEM_ARM, Direction
from lcm.consent import defined, is_trusted
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.token_estimator import ScriptAware

_HERE = "eval.measures."

Subject = Literal["rankings", "answers", "memory", "system"]

REPORT_TOKENS = ScriptAware()
"""The one estimator behind every reported token count, whatever the system under test uses."""

QUERY_VALUES_SCHEMA: dict[str, pl.DataType] = {
    "query_id": pl.String(),
    "measure": pl.String(),
    "value": pl.Float64(),
}
"""What a measure gives of queries; the arm is known to who asks."""
VALUES_SCHEMA: dict[str, pl.DataType] = {"arm": pl.String(), **QUERY_VALUES_SCHEMA}
EVIDENCE_TEXT_SCHEMA: dict[str, pl.DataType] = {
    "message_id": pl.String(),
    "quotation": pl.String(),
    "part": pl.Int64(),
    "parts": pl.Int64(),
    "document_id": pl.String(),
    "tokens": pl.Int64(),
}
"""Where the words of evidence stand: who has read so many tokens of a document, from its start, has read a quotation,
of whatever message (`message_id` is empty), or one of the parts of a judged message (`quotation` is empty); these may
stand in different documents."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """One arm of an experiment: its run, its documents and the dataset."""

    arm: str
    run: pl.DataFrame
    """workspace_id, query_id, document_id, rank (1-based), score: best first within a query."""
    documents: pl.DataFrame
    """workspace_id, document_id, source_message_ids, kind, is_durable, session_id, tokens: of every document."""
    dataset: Dataset
    evidence_text: pl.DataFrame | None = None
    """workspace_id beside `EVIDENCE_TEXT_SCHEMA`; None where nobody has the words of the documents."""
    reachable: pl.DataFrame | None = None
    """query_id, document_id, stands_for: of an arm that is a ceiling, all that may be ranked and covers messages of
    sessions with evidence. Measured is then the best order of it, for each measure by itself."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """One workspace: its memory, queries and answers."""

    memory: Memory
    queries: Sequence[Query]
    """Those that the memory was asked as it now stands; of a memory with everything ingested, all of the workspace."""
    ranked: pl.DataFrame
    """What the system answered to them, or the arm that is read: rows of `RANKED_SCHEMA`."""
    evidence: Mapping[str, Sequence[str]]
    """Query id -> ids of its relevant messages."""
    dataset: Dataset
    """The workspace's own, or the one that it is a part of."""
    arm: str = SYSTEM_ARM


@dataclass(frozen=True, slots=True)
class SystemReading:
    """A whole experiment: the system beside the dataset."""

    system: System
    dataset: Dataset
    incidents: Counter[str] = field(default_factory=Counter)
    """Where a measure counts what fails and is survived, by name and times."""
    documents: pl.DataFrame = field(default_factory=pl.DataFrame)
    """As in `RunReading`."""


class Measure(ABC):
    """A `measures` choice: a frozen dataclass that derives from this and says what differs.

    Laws: rows come in an order that depends on nothing but what is read; a value is a number or the row is left out.
    """

    __slots__ = ()

    subject: ClassVar[Subject]
    of_arms: ClassVar[bool] = False
    """Of `rankings` or `answers`: it is asked of each arm, not of the system alone."""
    plays_sessions: ClassVar[bool] = False
    """It plays sessions of the system's own, which are none of an external memory's."""
    is_of_time: ClassVar[bool] = False
    """It measures time, and has a setting `queries`: two equal runs may differ in it, and it changes no other number.
    Its section, part -> name -> number, stands under `timing` as `NAME_ms`, its whole first; an objective of `lcm tune`
    is `NAME/PART_NAME`, one of its `value_names()`: no other measure's names have a `/`."""
    needs: ClassVar[str] = ""
    """The choices that it asks for, where not every system gives it something to measure."""

    @abstractmethod
    def rows(self, reading: Any) -> pl.DataFrame:
        """What it measures, of a reading by its `subject`; further columns and `arm` stand beside those of values."""

    def value_names(self) -> Sequence[str]:
        """The measures of queries that it gives rows of."""
        return ()

    def giving(self, value: str) -> Self:
        """The same, which may leave out all but one of `value_names()`."""
        return self

    def direction(self, value: str) -> Direction:
        """Which values are better, of one of `value_names()`: lower ones of a cost."""
        return "higher"

    def depends_on(self, system: System) -> Sequence[object] | None:
        """What of the system the rows of a memory depend on, beside what it ingested and what of an arm was ranked;
        None = no two readings are equal."""
        return None

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        """Whether there is anything to measure where no query is judged."""
        return False

    def section(self, rows: pl.DataFrame, means: Means) -> Mapping[str, Any] | None:
        """What the summary tells of its rows, of all arms and workspaces; None = nothing, and of rows that are no
        values of queries no file is kept."""
        is_of_conversations = "conversation_id" in rows.columns and "query_id" not in rows.columns
        return means.of_conversations(rows) if is_of_conversations else None

    def notes(self, rows: pl.DataFrame, reading: SystemReading) -> Iterable[str]:
        """What a reader of the run must know, a line each.

        Args:
            rows: of all arms and workspaces, those of queries with the column `arm`.
        """
        return ()

    @property
    def context_budgets(self) -> Sequence[int]:
        """Tokens of the contexts of queries that it reads: a memory that is asked once must be asked for these."""
        return ()

    def timed_queries(self) -> int:
        """How many queries a measure of time times at most; 0 = it is off."""
        return 0

    def chosen(self, queries: Sequence[Query]) -> Sequence[Query]:
        """Those of a dataset's queries that a measure of time times; other workspaces are not read."""
        return queries


def is_timing(settings: object) -> bool:
    """Whether settings, with the class that they are of under `_target_`, are those of a measure of time."""
    try:
        target = str(settings["_target_"]) if isinstance(settings, Mapping) else ""
        is_known = target.startswith(_HERE) or is_trusted(target)
        kind = defined(target) if is_known else None
    except (KeyError, ValueError):
        return False  # of an older or another package: whoever builds it says so
    return isinstance(kind, type) and issubclass(kind, Measure) and kind.is_of_time


def directions_of(measures: Mapping[str, Measure]) -> dict[str, Direction]:
    """Value -> which way it is better."""
    return {value: one.direction(value) for one in measures.values() for value in one.value_names()}


def timed(measures: Mapping[str, Measure]) -> dict[str, int]:
    """Measure of time -> how many live queries it times; those that time none are left out."""
    of_time = {name: one for name, one in measures.items() if isinstance(one, Measure) and one.is_of_time}
    found = {name: one.timed_queries() for name, one in of_time.items()}
    return {name: queries for name, queries in found.items() if queries}
