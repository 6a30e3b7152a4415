"""A memory system: the components that it is wired from."""

from dataclasses import dataclass, field

from lcm.compaction.scheduling import Asynchronous, Synchronous
from lcm.compaction.summary_documents import NoSummaryDocuments
from lcm.compaction.work import NoCompaction
from lcm.context.assembly.lossless import Lossless as LosslessAssembly
from lcm.context.authored import NothingAuthored
from lcm.memory.scopes import Scopes
from lcm.memory.session import SessionRules
from lcm.protocols.compaction import Compaction, SummaryDocuments
from lcm.protocols.context import Assembly, Authored
from lcm.protocols.models import Embedder, TokenEstimator
from lcm.protocols.reinforcement import Reinforcement
from lcm.protocols.retrieval import Ranker, TextIndexChoice, VectorIndexChoice
from lcm.protocols.writing import Admission, Deduplication, Extraction
from lcm.retrieval.reinforcement import NoReinforcement
from lcm.token_estimator import ScriptAware
from lcm.writing.admission.amac import AdmitAll
from lcm.writing.deduplication import KeepAll

_PART_METHODS = {
    "embedder": "embed",
    "vector_index": "build",
    "text_index": "build",
    "token_estimator": "count",
    "extraction": "extract",
    "ranking": "rank",
    "admission": "assess",
    "deduplication": "judge",
    "reinforcement": "after_recall",
    "scopes": "readable",
    "compaction": "compact",
    "assembly": "assemble",
    "session": "writes",
    "authored": "nodes",
    "summary_documents": "document",
}


@dataclass(frozen=True, slots=True)
class System:
    """The parts of a memory system; `Memory.open` gives it a workspace to work on."""

    embedder: Embedder
    vector_index: VectorIndexChoice
    text_index: TextIndexChoice
    token_estimator: TokenEstimator
    extraction: Extraction
    ranking: Ranker
    admission: Admission = field(default_factory=AdmitAll)
    deduplication: Deduplication = field(default_factory=KeepAll)
    reinforcement: Reinforcement = field(default_factory=NoReinforcement)
    scopes: Scopes = field(default_factory=Scopes)
    compaction: Compaction = field(default_factory=NoCompaction)
    scheduling: Synchronous | Asynchronous = field(default_factory=Synchronous)
    assembly: Assembly = field(default_factory=lambda: LosslessAssembly(ScriptAware()))
    session: SessionRules = field(default_factory=SessionRules)
    authored: Authored = field(default_factory=NothingAuthored)
    summary_documents: SummaryDocuments = field(default_factory=NoSummaryDocuments)

    def __post_init__(self) -> None:
        if not isinstance(self.scheduling, Synchronous | Asynchronous):
            raise TypeError(f"scheduling must be Synchronous or Asynchronous, got {self.scheduling!r}")
        for name, method in _PART_METHODS.items():
            if not callable(getattr(getattr(self, name), method, None)):
                raise TypeError(f"{name} must have {method}(), got {getattr(self, name)!r}")
