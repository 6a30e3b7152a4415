"""What a measure is: a choice of the group `measures`, that reads one thing and gives rows.

A measure has exactly one of five methods, which says what it reads:

- `of_run`: what one arm answered to all queries (`RunMeasure`);
- `of_arm`: the memory of a workspace as queries found it, and what one arm answered to them (`ArmMeasure`);
- `of_queries`: the memory of a workspace as queries found it (`QueryMeasure`);
- `of_memory`: the memory of a workspace that has ingested everything (`MemoryMeasure`);
- `of_system`: the system itself, beside the dataset (`SystemMeasure`).

Rows query_id, measure, value are averaged, shown, logged, compared and tuned by like all others. Other rows are kept in
a file of the measure's own name, and told in a section of that name in the summary: the means over conversations of
rows arm, conversation_id, measure, value, or what the measure's own `section` makes of its rows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import polars as pl

from eval.dataset.dataset import Dataset
from lcm.consent import defined, is_trusted
from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.records.query import Query
from lcm.token_estimator import ScriptAware

_HERE = "eval.measures."

Direction = Literal["higher", "lower"]
"""Which values of a measure are better."""

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
class MemoryReading:
    """What a measure gets to read of one workspace: its memory, queries and answers."""

    memory: Memory
    queries: Sequence[Query]
    """Those that the memory was asked as it now stands; of a memory with everything ingested, all of the workspace."""
    ranked: pl.DataFrame
    """What the system answered to them, or the arm that is read: rows of `RANKED_SCHEMA`."""
    evidence: Mapping[str, Sequence[str]]
    """Query id -> ids of its relevant messages."""
    dataset: Dataset
    """The workspace's own, or the one that it is a part of."""


@dataclass(frozen=True, slots=True)
class RunReading:
    """What a measure gets to read of one arm of an experiment: its run, its documents and the dataset."""

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


class Measure(Protocol):
    """A `measures` choice: one of the five below.

    Laws: rows come in an order that depends on nothing but what is read; a value is a number or the row is left out.
    Higher values are better, unless it says otherwise of them (`TellsDirection`).
    """

    def value_names(self) -> Sequence[str]:
        """The measures of queries that it gives rows of."""
        ...


@runtime_checkable
class TellsDirection(Protocol):
    """A measure some of whose values are better low, as costs are."""

    def direction(self, value: str) -> Direction:
        """Of one of `value_names()`."""
        ...


@runtime_checkable
class RunMeasure(Measure, Protocol):
    """Reads what one arm answered; asked once an arm."""

    def of_run(self, reading: RunReading) -> pl.DataFrame: ...


@runtime_checkable
class ArmMeasure(Measure, Protocol):
    """Reads the memory of a workspace as queries found it, and what an arm ranked; asked of each arm, whenever the
    workspace is asked. Its rows may have further columns: what these say of each query is kept in its file."""

    def depends_on(self, system: System) -> Sequence[object]:
        """What of the system its rows depend on, beside what the memory has ingested and the arm has ranked."""
        ...

    def is_measured(self, dataset: Dataset) -> bool:
        """Whether there is anything to measure, be queries judged or not."""
        ...

    def of_arm(self, reading: MemoryReading, arm: str) -> pl.DataFrame: ...

    def unpaired(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What its section tells: means over queries that each arm chooses itself, as of a precision.

        Args:
            rows: of all arms, with the column `arm`.
        Returns:
            Rows arm, measure, value.
        """
        ...

    def notes(self, dataset: Dataset) -> Sequence[str]:
        """What a reader of the run must know, a line each."""
        ...


@runtime_checkable
class QueryMeasure(Measure, Protocol):
    """Reads the memory of a workspace as queries found it; asked whenever the workspace is asked."""

    def depends_on(self, system: System) -> Sequence[object]:
        """What of the system its rows depend on, beside what the memory has ingested."""
        ...

    def of_queries(self, reading: MemoryReading) -> pl.DataFrame: ...


@runtime_checkable
class MemoryMeasure(Measure, Protocol):
    """Reads the memory of a workspace that has ingested everything; asked once a workspace."""

    def depends_on(self, system: System) -> Sequence[object] | None:
        """What of the system its rows depend on, beside what is ingested; None = no two readings are equal."""
        ...

    def of_memory(self, reading: MemoryReading) -> pl.DataFrame: ...


@runtime_checkable
class SystemMeasure(Measure, Protocol):
    """Reads the system beside the dataset; asked once."""

    def is_measured(self, system: System, dataset: Dataset) -> bool:
        """Whether there is anything to measure, be queries judged or not."""
        ...

    def of_system(self, system: System, dataset: Dataset, *, incidents: Counter[str]) -> pl.DataFrame:
        """Give the rows; what fails and is survived is counted in `incidents`, by name and times."""
        ...


@runtime_checkable
class TimingMeasure(Measure, Protocol):
    """A measure of time, with a setting `queries`: two equal runs may differ in it, and it changes no other number.

    Its section, part -> name -> number, stands under `timing` as `NAME_ms`, its whole first; an objective of `lcm tune`
    is `NAME/PART_NAME`, one of its `value_names()`: no other measure's names have a `/`."""

    def timed_queries(self) -> int:
        """At most; 0 = the measure is off."""
        ...

    def chosen(self, queries: Sequence[Query]) -> list[Query]:
        """Those of a dataset's queries that are timed; other workspaces are not read."""
        ...


@runtime_checkable
class ReadsContexts(Protocol):
    """A measure that reads contexts of queries: a memory that is asked once must be asked for these."""

    @property
    def context_budgets(self) -> Sequence[int]:
        """Tokens."""
        ...


@runtime_checkable
class TellsNeeds(Protocol):
    """A measure that not every system gives something to measure."""

    needs: ClassVar[str]
    """The choices that it asks for."""


@runtime_checkable
class TellsSection(Protocol):
    """A measure whose rows are no values by arm, and which sums them up itself."""

    def section(self, rows: pl.DataFrame) -> Mapping[str, Any]: ...


@runtime_checkable
class TellsNotes(Protocol):
    """A measure whose rows are no values of queries, and of which a reader of the run must know something."""

    def notes(self, rows: pl.DataFrame) -> Sequence[str]:
        """A line each."""
        ...


@runtime_checkable
class Warns(Protocol):
    """A measure that knows when its values mislead."""

    def flags(self, values: pl.DataFrame, documents: pl.DataFrame, dataset: Dataset) -> Sequence[str]:
        """What a reader of the numbers must know, a line each.

        Args:
            values: rows of `VALUES_SCHEMA` of the system, of this measure and the others.
            documents: as in `RunReading`.
        """
        ...


def is_timing(settings: object) -> bool:
    """Whether settings, with the class that they are of under `_target_`, are those of a measure of time."""
    try:
        target = str(settings["_target_"]) if isinstance(settings, Mapping) else ""
        is_known = target.startswith(_HERE) or is_trusted(target)
        kind = defined(target) if is_known else None
    except (KeyError, ValueError):
        return False  # of an older or another package: whoever builds it says so
    return isinstance(kind, type) and issubclass(kind, TimingMeasure)


def directions_of(measures: Mapping[str, Measure]) -> dict[str, Direction]:
    """Value -> which way it is better."""
    return {
        value: one.direction(value) if isinstance(one, TellsDirection) else "higher"
        for one in measures.values()
        for value in one.value_names()
    }


def timed(measures: Mapping[str, Measure]) -> dict[str, int]:
    """Measure of time -> how many live queries it times; those that time none are left out."""
    found = {name: one.timed_queries() for name, one in measures.items() if isinstance(one, TimingMeasure)}
    return {name: queries for name, queries in found.items() if queries}


KINDS = (RunMeasure, ArmMeasure, QueryMeasure, MemoryMeasure, SystemMeasure)
