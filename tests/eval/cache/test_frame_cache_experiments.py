"""An experiment whose stages are kept finds what it would find without; and only what changed is worked out again."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from omegaconf import DictConfig
from polars.testing import assert_frame_equal

from eval.cache.stage_cache import StageCache
from eval.experiment.outcome import Outcome
from pipelines.config import composition
from pipelines.steps.point import experiment_of
from tests.support.component_results import outcome
from tests.support.small_talk import dataset
from tests.support.workspaces import minute

SYSTEMS = {
    "unified": ("system=unified",),
    "lancedb_pro": ("system=lancedb_pro", "admission=balanced", "annotation=rules"),
    "libravdb": ("system=libravdb",),
    "continuity": ("compaction=clustering", "assembly=continuity", "summary_documents=searchable"),
    "per_turn": ("replay=per_turn", "system=lossless_claw"),
    "tiers": ("vector_index=hnsw_tiers", "text_index=bm25s"),
}


def configured(place: Path, *overrides: str) -> DictConfig:
    cheap = ("embedder=hashing", "measures.latency.queries=0", "measures.retention.budgets=[200]", "means.resamples=5")
    plain = () if any(one.startswith("system=") for one in overrides) else ("system=hybrid",)
    return composition.composed([*plain, *cheap, f"stages.directory={place}", *overrides])


def assert_equal(one: Outcome, other: Outcome) -> None:
    for name in ("run", "documents", "values", "means", "decisions"):
        assert getattr(one, name).equals(getattr(other, name)), name
    assert one.frames.keys() == other.frames.keys()
    assert one.frames.keys() - {"index_search"} == {"compression", "summary_quality"}
    assert all(rows.equals(other.frames[name]) for name, rows in one.frames.items())
    for name in ("incidents", "flags", "counts", "sections"):
        assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize(
    "system",
    [pytest.param(name, marks=[] if name in ("unified", "per_turn") else [pytest.mark.full]) for name in SYSTEMS],
)
def test_the_numbers_are_equal_without_a_cache_with_a_new_one_and_with_a_full_one(tmp_path: Path, system: str) -> None:
    without = outcome(configured(tmp_path, *SYSTEMS[system], "cache=false"))
    assert without.run.height > 0
    assert not any(tmp_path.iterdir())
    assert_equal(outcome(configured(tmp_path, *SYSTEMS[system])), without)
    assert any(tmp_path.iterdir())
    assert_equal(outcome(configured(tmp_path, *SYSTEMS[system])), without)


@pytest.mark.parametrize("seed", range(2))
def test_points_of_a_random_grid_have_the_numbers_of_single_runs(tmp_path: Path, seed: int) -> None:
    """Whatever points share, from weights that are equal to decays that move nothing, in whatever order they come."""
    chance = Random(seed)
    weights = [f"fusion.dense_weight={chance.choice([0.0, 0.3, chance.random()])}" for _ in range(2)]
    decays = ["decay=none", "decay=exponential", "decay=weibull"]
    grid = [(weight, decay) for weight in weights for decay in chance.sample(decays, 2)]
    for point in chance.sample(grid, len(grid)):
        shared, alone = (outcome(configured(tmp_path, *point, *more)) for more in ((), ("cache=false",)))
        for name in ("run", "values", "means"):
            assert_frame_equal(getattr(shared, name), getattr(alone, name), rel_tol=0, abs_tol=1e-9)
        assert (shared.flags, shared.incidents) == (alone.flags, alone.incidents)


@pytest.mark.parametrize(
    ("base", "change", "again"),
    [
        ((), "fusion.dense_weight=0.5", {"ranked", "values"}),
        ((), "measures.retention.budgets=[300]", {"measured"}),
        pytest.param(
            ("assembly=continuity",), "assembly.rules=original", {"checkpoints", "measured"}, marks=pytest.mark.full
        ),
    ],
    ids=["another fusion weight", "another budget", "messages worded in another way"],
)
def test_another_setting_makes_again_what_it_changes(
    tmp_path: Path, base: tuple[str, ...], change: str, again: set[str]
) -> None:
    outcome(configured(tmp_path, *base))
    before = {(entry.stage, entry.path.name) for entry in StageCache(str(tmp_path)).entries()}
    outcome(configured(tmp_path, *base, change))
    added = {(entry.stage, entry.path.name) for entry in StageCache(str(tmp_path)).entries()} - before
    found = sorted(stage for stage, _ in added)
    assert found == sorted(again) or (base and again <= set(found))


def test_points_of_a_sweep_share_what_their_control_arms_found(tmp_path: Path) -> None:
    one, other = (outcome(configured(tmp_path, f"fusion.dense_weight={weight}")) for weight in (0.2, 0.9))
    assert one.control_run is other.control_run
    assert one.control_values is other.control_values
    assert set(one.control_run["arm"]) == set(one.control_values["arm"]) > {"bm25", "dense"}
    assert not one.system_values.equals(other.system_values)
    alone = outcome(configured(tmp_path, "fusion.dense_weight=0.9", "cache=false"))
    assert_equal(other, alone)


@pytest.mark.parametrize("stage", ["checkpoints", "pools", "ranked", "measured", "facts", "values", "means"])
def test_a_damaged_stage_is_made_again(tmp_path: Path, stage: str) -> None:
    first = outcome(configured(tmp_path / "a"))
    for entry in StageCache(str(tmp_path / "a")).entries():
        if entry.stage == stage:
            victim = next(entry.path.iterdir()) if entry.path.is_dir() else entry.path
            victim.write_bytes(victim.read_bytes()[:-7])
        elif (stage == "pools" and entry.stage == "ranked") or stage == "checkpoints":
            entry.path.unlink()  # else nobody would ask for the damaged one
    (tmp_path / "a").rename(tmp_path / "b")  # so that nothing is at hand
    again = outcome(configured(tmp_path / "b"))
    assert again.incidents.keys() - first.incidents.keys() == {f"damaged cache entry, {stage}"}
    assert_equal(replace(again, incidents=first.incidents), first)


def test_what_another_process_removes_meanwhile_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = dataset()
    at_first = replace(talk.queries[0], asked_at=minute(9))  # so that there are two checkpoints
    asked_twice = replace(talk, queries=(at_first, *talk.queries[1:]))

    def outcome(config: DictConfig) -> Outcome:
        return experiment_of(config, asked_twice).run(lambda *_: None)

    first = outcome(configured(tmp_path, "cache=false", "fusion.dense_weight=0.4"))
    outcome(configured(tmp_path))
    real = StageCache.read_folder

    def removed_once_read(cache: StageCache, stage: str, key: str) -> Path | None:
        folder = real(cache, stage, key)
        for file in () if folder is None else folder.glob("*.db"):
            file.unlink()
        return folder

    monkeypatch.setattr(StageCache, "read_folder", removed_once_read)
    assert_equal(outcome(configured(tmp_path, "fusion.dense_weight=0.4", "stages.memory_gib=0.0")), first)
    assert "played again" in caplog.text
