"""What a component says of itself: by it a run tells which parts have work, and a ranking what its steps need."""

from dataclasses import dataclass

INDEXES = ("vector_index", "text_index")
"""The indexes of a memory, as their groups are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a component reads and makes, what it asks, and what leaves it without work.

    It is the `contract` of a class, or a property where settings decide. What a component does not say is as here.
    """

    is_off: bool = False
    """It does nothing: it is the null choice of its group, or holds that."""
    idle_because: str | None = None
    """Why it has no work as it is set; None = it has."""
    reads: tuple[str, ...] | None = None
    """The columns that it reads of documents and of evidence, of a fusion all columns; None = it may read all."""
    makes: tuple[str, ...] = ()
    """The columns that a step before the fusion makes for it, and for nothing else."""
    follows: tuple[str, ...] = ()
    """The groups without whose documents it has no work."""
    asks: tuple[str, ...] = INDEXES
    """The indexes of the memory that a source asks, of `INDEXES`."""
    fills: tuple[str, ...] = ("cosine", "bm25")
    """The raw scores that a source of several orders gives."""
    needs_vectors: bool = False
    """It reads the vectors of queries."""
    compares_vectors: bool = False
    """It compares vectors, of queries or of documents alone."""
    gives_unit_scores: bool = True
    """Its scores lie in [0, 1]."""
    reads_unit_scores: bool = False
    """It reckons with scores in [0, 1]."""
    weighs_branches: bool = False
    """A fusion weighs each branch of a source by its name."""


NOTHING_SAID = Contract()


def contract_of(part: object) -> Contract:
    """What a component says of itself, or what its class says of all of its kind.

    Raises:
        TypeError: if what it calls its contract is none, as a method that lacks `@property`.
    """
    told = getattr(part, "contract", NOTHING_SAID)
    if isinstance(told, Contract):
        return told
    if isinstance(part, type):  # of a property nothing is known before a component is built
        return NOTHING_SAID
    raise TypeError(f"contract of {type(part).__name__} must be a Contract, or a property that gives one, got {told!r}")
