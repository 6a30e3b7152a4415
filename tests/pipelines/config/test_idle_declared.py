"""Idle parts, by what components say of themselves: one from outside the package as well as our own."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lcm.memory.session.rules import SessionRules
from lcm.protocols.retrieval import Batch
from lcm.retrieval.ranking.ordering import best_first
from pipelines.config.idle import idle_note
from tests.support.composing import composed

NO_LIVE_SESSION = (
    "session (nothing in an evaluation asks it: it plays no live session, and here are no patterns nor large files)"
)
NO_TEXT_INDEX = "text_index (this source does not ask it)"
CANDIDATES_ALONE = "scores of text_index (this fusion weighs none of its scores: it adds candidates alone)"
UNUSED = "reinforcement (neither fusion nor decay reads how often a document was used)"


def told(*overrides: str) -> str:
    plain = () if any(one.startswith("system=") for one in overrides) else ("system=hybrid",)
    return (idle_note(composed([*plain, *overrides])) or "").removeprefix("parts without work here: ")


@dataclass(frozen=True, slots=True)
class ByUse:
    """A stage of a user: what was used most comes first."""

    reads = ("access_count",)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return best_first(frame.with_columns(score=pl.col("access_count").cast(pl.Float64)))


@dataclass(frozen=True, slots=True)
class Lengths:
    """A stage of evidence of a user."""

    makes = ("length_share",)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        return frame.with_columns(length_share=pl.col("tokens") / pl.col("tokens").max())


@dataclass(frozen=True, slots=True)
class Newest:
    """A source of a user that asks no index."""

    asks = ()
    needs_vectors = False

    def candidates(self, batch: Batch) -> pl.DataFrame:
        raise AssertionError("a note asks nothing")


@dataclass(frozen=True, slots=True)
class QuietRules(SessionRules):
    """Session rules of a user that wait for something else."""

    @property
    def idle_because(self) -> str | None:
        return "it waits for a session named quiet"


def test_use_that_a_stage_from_outside_reads_has_work() -> None:
    assert told("reinforcement=recall") == UNUSED
    assert told("reinforcement=recall", f"+ranking.stages.by_use._target_={__name__}.ByUse") == ""
    assert told("reinforcement=recall", "decay=weibull") == ""
    assert told("reinforcement=recall", "decay=exponential") == UNUSED
    assert told("reinforcement=recall", "fusion=two_pass") == ""


def test_what_a_stage_makes_and_the_fusion_does_not_read_is_told() -> None:
    lengths = f"+ranking.stages.lengths._target_={__name__}.Lengths"
    assert told(lengths) == "ranking.stages.lengths (this fusion reads no column that they make)"
    assert told(lengths, "fusion=learnt", "+fusion.weights.length_share=1") == ""
    unread = "(this fusion reads no column that they make)"
    assert told("ranking=neighbours", "fusion=reciprocal_rank") == f"ranking.stages.neighbours {unread}"
    assert told("ranking=neighbours") == ""
    some = told("ranking=unified", "fusion=learnt", "+fusion.weights.alike_sum=1")
    assert some.endswith(f"ranking.stages.form {unread}")
    assert "words" in some
    assert "likeness" not in some


def test_a_text_index_that_a_source_does_not_ask_is_told() -> None:
    assert told("source=libravdb", "text_index=bm25s") == NO_TEXT_INDEX
    by_vectors = told("ranking=lancedb_pro", "ranking.mode=vector", "text_index=bm25s")
    assert by_vectors == f"fusion (nothing that is chosen takes it up); {NO_TEXT_INDEX}"


def test_a_source_from_outside_asks_what_it_says() -> None:
    config = composed(["system=hybrid", "text_index=bm25s", "vector_index=hnsw"])
    config.source = {"_target_": f"{__name__}.Newest"}
    assert idle_note(config) == ("parts without work here: text_index, vector_index (this source does not ask it)")


def test_session_rules_that_only_live_sessions_ask_are_told() -> None:
    assert told("session.prune_heartbeats=true") == NO_LIVE_SESSION
    assert told("session=lossless_claw", "session.large_file_threshold_tokens=null") == NO_LIVE_SESSION
    assert told("session=lossless_claw") == "", "a large text would be taken out: the run tells whether there was one"
    assert told("session.ignore_patterns=['cron:*']") == ""
    assert told("session.stateless_patterns=['cron:*']", "session.skip_stateless=false") == NO_LIVE_SESSION
    assert told(f"session._target_={__name__}.QuietRules") == "session (it waits for a session named quiet)"


def test_authored_files_of_which_none_is_named_are_told(tmp_path: Path) -> None:
    assert told("authored=files") == "authored (authored.paths names no file)"
    assert told("authored=files", f"authored.paths=[{tmp_path}]") == ""
    assert told("ranking=libravdb") == "ranking.stages.hops (authored=none)"
    assert told("ranking=libravdb", "authored=files", f"authored.paths=[{tmp_path}]") == ""


def test_an_index_whose_scores_a_fusion_does_not_weigh_is_told() -> None:
    assert told("fusion=two_pass", "text_index=bm25s") == CANDIDATES_ALONE
    assert told("system=unified", "text_index=bm25s") == CANDIDATES_ALONE
    assert told("text_index=bm25s") == ""


def test_a_setting_that_another_leaves_without_effect_is_told_where_it_was_set() -> None:
    assert told("vector_index=hnsw_tiers") == ""
    unused = told("vector_index=hnsw_tiers", "vector_index.rotation_from=7")
    assert unused == "vector_index.rotation_from (vector_index.rotation=none leaves it without effect)"
    stale = ("system=lancedb_pro", "decay.stale_threshold=0.9")
    assert told("system=lancedb_pro") == told(*stale, "measures=[default,staleness]") == ""
    assert told(*stale) == "decay.stale_threshold (measures.staleness=null leaves it without effect)"
    others = ("distractors.transcripts.paths=[chats]", "replay.seed=4")
    assert told(*others, "replay.distractors=10") == ""
    assert told(*others) == "replay.seed, distractors (replay.distractors=0 leaves it without effect)"


def test_a_weight_without_another_branch_is_told_where_only_the_order_is_left_of_scores() -> None:
    alone = "fusion.dense_weight (with no branch beside it, it changes no order)"
    assert told("source=dense", "fusion=plain_sum", "fusion.dense_weight=.5") == alone
    assert told("source=hybrid", "fusion=plain_sum", "fusion.dense_weight=.5") == ""
    assert told("source=dense", "fusion=weighted_sum", "fusion.dense_weight=.5") == ""
