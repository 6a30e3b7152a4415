"""One judgement of a document for a query: by whom, and how relevant it is."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from lcm.checks import check_choice, check_range

Kind = Literal["human", "file", "model"]
"""Who judged: a person, whoever made a file, a language model. An earlier one counts before a later one."""
State = Literal["judged", "skipped", "withdrawn"]
GRADES = {"relevant": 2, "partly": 1, "not": 0}
"""What a judge may say, and the relevance that it stands for."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge said of one document for one query; a later one of the same judge stands in place of it."""

    query_id: str
    document_id: str
    """The message, by the id that `lcm datasets write` gives it."""
    relevance: int | None
    """0 is not relevant; None where nothing was decided."""
    judge: str
    kind: Kind = "human"
    state: State = "judged"
    judged_at: str = ""
    """ISO 8601."""

    def __post_init__(self) -> None:
        check_choice(self, kind=Kind, state=State)
        check_range(self, "relevance", ge=0, is_whole=True, or_null=True)
        for name in ("query_id", "document_id", "judge", "judged_at"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be text, got {getattr(self, name)!r}")
        if (self.relevance is None) == (self.state == "judged"):
            raise ValueError(f"relevance must be null unless the state is judged, got {self.relevance!r}")

    @property
    def pair(self) -> tuple[str, str]:
        return self.query_id, self.document_id

    def record(self) -> dict[str, Any]:
        """As it stands in a file."""
        return asdict(self)


KEYS = tuple(one.name for one in fields(Judgement))
