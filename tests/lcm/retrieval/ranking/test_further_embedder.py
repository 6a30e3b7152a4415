"""A second embedder beside that of the memory, and a cross-encoder behind the fusion, in `system=unified`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from lcm.errors import LcmError, ModelError
from lcm.memory.memory import Memory
from lcm.protocols.models import TextKind, Vectors
from lcm.protocols.retrieval import Stage
from lcm.records.query import Query
from lcm.retrieval.embedder.hashing import Hashing, TokenSum
from lcm.retrieval.embedder.onnx import Onnx
from lcm.retrieval.ranking.evidence.vector_evidence import FurtherVectorEvidence, VectorEvidence
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.source.indexes import Hybrid
from pipelines.config import building
from tests.support.composing import composed
from tests.support.workspaces import LINES, minute, system, transcript

QUESTIONS = [Query("q0", "What broke in the kitchen?", minute(99)), Query("q1", "Where are Ada's goats?", minute(99))]
LONG = " ".join(LINES[:4]) * 40
TWO_EMBEDDERS = ("system=unified_two_embedders", "embedder=hashing", "embedder@further_embedder=token_sum")


def unscored(frame: pl.DataFrame, batch: object) -> pl.DataFrame:
    return frame.with_columns(score=pl.lit(0.0))


def evidence(stage: Stage) -> tuple[pl.DataFrame, Memory]:
    """The frame behind a stage, over a talk with a text of several windows; and the memory, closed."""
    seen: list[pl.DataFrame] = []

    def keep(frame: pl.DataFrame, batch: object) -> pl.DataFrame:
        seen.append(frame)
        return unscored(frame, batch)

    with Memory.open(system()) as memory:
        memory.ingest(transcript([*LINES, LONG]))
        memory.rank(QUESTIONS, Ranking(Hybrid(), {"evidence": stage, "keep": keep}))
    return seen[0], memory


def test_the_memorys_own_embedder_gives_the_same_evidence_once_more() -> None:
    own, _ = evidence(VectorEvidence(Hashing()))
    further, _ = evidence(FurtherVectorEvidence(Hashing()))
    names = {f"further_{name}": name for name in ("meaning_passage", "meaning_window")}
    assert further.select(names.keys()).rename(names).equals(own.select(names.values()))
    assert own["meaning_passage"].n_unique() > 4


def test_a_failing_embedder_is_counted_and_changes_no_order() -> None:
    frame, memory = evidence(FurtherVectorEvidence(Counting(fails=True)))
    made = FurtherVectorEvidence.contract.makes
    assert frame.select(made).sum().row(0) == (0.0,) * len(made)
    assert memory.incidents["vector evidence failed"] == len(QUESTIONS)


@dataclass(frozen=True)
class Counting:
    """An embedder that notes which documents it is given, or fails as if its server did not answer."""

    fails: bool = False
    seen: list[str] = field(default_factory=list)
    name = "counting"
    dim = 384

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return Hashing().windows(texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        if self.fails:
            raise ModelError("no answer")
        self.seen.extend(texts if kind == "document" else ())
        return Hashing().embed(texts, kind)


def test_of_a_talk_that_grows_only_what_is_new_is_embedded() -> None:
    embedder = Counting()
    ranking = Ranking(Hybrid(), {"evidence": FurtherVectorEvidence(embedder), "score": unscored})
    with Memory.open(system()) as memory:
        memory.ingest(transcript(LINES[:5]))
        memory.rank(QUESTIONS, ranking)
        memory.rank(QUESTIONS, ranking)
        memory.ingest(transcript(LINES[5:], name="more"))
        memory.rank(QUESTIONS, ranking)
        texts = memory.documents["text"].to_list()
    assert sorted(embedder.seen) == sorted(texts)


def test_a_model_that_is_not_there_is_told_with_key_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"^\S+nowhere/model\.onnx does not exist: set directory .*further_embedder"):
        evidence(FurtherVectorEvidence(Onnx(str(tmp_path / "nowhere"))))


def test_no_embedder_is_refused_with_key_and_remedy() -> None:
    for key in ("further_embedder", "ranking.stages.further_vectors.embedder", "memory.embedder"):
        with pytest.raises(LcmError, match=f"^{key} must be a component, got null: choose one, .*null$"):
            building.build(composed([*TWO_EMBEDDERS, f"{key}=null"]), "memory")


def ranked(*overrides: str) -> pl.DataFrame:
    with Memory.open(building.build(composed(overrides), "memory")) as memory:
        memory.ingest(transcript(LINES))
        return memory.rank(QUESTIONS)


def test_a_second_embedder_is_one_of_the_preset_and_its_evidence_counts() -> None:
    memory = building.build(composed(TWO_EMBEDDERS), "memory")
    assert memory.ranking.stages["further_vectors"].embedder.embedder == TokenSum()
    weights = memory.ranking.stages["fusion"].weights
    assert {name for name in weights if name.startswith("further_")} <= set(FurtherVectorEvidence.contract.makes)
    both, one = ranked(*TWO_EMBEDDERS), ranked(*TWO_EMBEDDERS, "ranking.stages.further_vectors=null")
    assert not both["score"].equals(one["score"])
