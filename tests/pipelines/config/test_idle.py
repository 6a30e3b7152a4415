"""Parts without work, by what components say of themselves: one from outside the package as well as our own."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from lcm.errors import LcmError
from lcm.memory.session import SessionRules
from lcm.protocols.contract import Contract
from lcm.protocols.retrieval import Batch
from lcm.retrieval.frames import best_first
from pipelines.config import contracts
from pipelines.config.contracts import alike_notes, idle_note
from pipelines.steps.point import READ
from tests.support.composing import composed

WORDS = {
    "BRANCHES": "source=branches",
    **{f"NO_{name.upper()}": f"source.branches.{name}=null" for name in ("dense", "lexical", "session", "speaker")},
}
LINES = (Path(__file__).parent / "idle.txt").read_text().splitlines()


@dataclass(frozen=True, slots=True)
class ByUse:
    """A stage of a user: what was used most comes first."""

    contract = Contract(reads=("access_count",))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=pl.col("access_count").cast(pl.Float64)))


@dataclass(frozen=True, slots=True)
class Lengths:
    """A stage of evidence of a user."""

    contract = Contract(makes=("length_share",))

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.with_columns(length_share=pl.col("tokens") / pl.col("tokens").max())


@dataclass(frozen=True, slots=True)
class Newest:
    """A source of a user that asks no index."""

    contract = Contract(asks=())

    def candidates(self, batch: Batch) -> pl.DataFrame:
        raise AssertionError("a note asks nothing")


@dataclass(frozen=True, slots=True)
class QuietRules(SessionRules):
    """Session rules of a user that wait for something else."""

    @property
    def contract(self) -> Contract:
        return Contract(idle_because="it waits for a session named quiet")


@pytest.mark.parametrize("line", [line for line in LINES if line and not line.startswith("#")])
def test_parts_without_work_are_told(line: str, tmp_path: Path) -> None:
    asked, told = line.replace("HERE", __name__).replace("FOLDER", str(tmp_path)).split(" :: ")
    overrides = [WORDS.get(word, word) for word in asked.split()]
    system = [] if "system=" in asked else ["system=hybrid"]
    note = (idle_note(composed([*system, *overrides])) or "").removeprefix("parts without work here: ")
    if told.startswith(("has: ", "not: ")):
        assert (told[5:] in note) == told.startswith("has"), note
    else:
        assert note == ("" if told == "nothing" else told)


FLOOR = "a document that was never used stands on floor_working whatever its age: reinforcement=recall, decay.recency_"


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        (("decay=weibull", "decay=weibull_fast"), FLOOR),
        (("decay=weibull decay.beta_core=0.5", "decay=weibull decay.recency_half_life_days=5"), FLOOR),
        (("decay=weibull_lifted", "decay=weibull_fast"), None),
        (("decay=weibull decay.floor_working=0.6", "decay=weibull_fast decay.floor_working=0.6"), None),
        (("decay=weibull reinforcement=recall", "decay=weibull_fast reinforcement=recall"), None),
        (("decay=weibull reinforcement=access_count", "decay=weibull_fast reinforcement=access_count"), None),
        (("decay=weibull measures=[default,staleness]", "decay=weibull_fast measures=[default,staleness]"), None),
        (("source=dense arms=none", "source=dense arms=none text_index=bm25s"), "this source does not ask it"),
        (("summarizer.coverage=0.3", "summarizer.coverage=0.4"), "compaction=none makes no summary"),
        (("fusion.dense_weight=0.3", "fusion.dense_weight=0.4"), None),
    ],
)
def test_what_a_setting_leaves_without_effect_is_known_before_a_sweep(
    points: tuple[str, str], reason: str | None
) -> None:
    third = "fusion.lexical_weight=0.9"
    configs = {name: composed(["system=hybrid", *name.split()]) for name in (*points, third)}
    notes = alike_notes(configs, READ)
    if reason is None:
        assert notes == []
    else:
        (note,) = notes
        assert note.startswith(f"equal before they run: {points[0]}, {points[1]} ({reason}")


def test_a_source_from_outside_asks_what_it_says() -> None:
    config = composed(["system=hybrid", "text_index=bm25s", "vector_index=hnsw"])
    config.source = {"_target_": f"{__name__}.Newest"}
    assert idle_note(config) == "parts without work here: text_index, vector_index (this source does not ask it)"


def test_weights_of_0_are_refused_before_a_run_where_no_other_branch_weighs() -> None:
    nothing = ["system=hybrid", "fusion=reciprocal_rank", "fusion.dense_weight=0", "fusion.lexical_weight=0"]
    with pytest.raises(LcmError, match=r"must not both be 0 .*: raise one, or choose source=branches"):
        contracts.refuse_unused(composed(nothing), [])
    contracts.refuse_unused(composed(["source=branches", *nothing]), [])
    contracts.refuse_unused(composed(nothing[:3]), [])
