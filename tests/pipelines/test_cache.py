"""`lcm cache` removes what it is told to, and nothing else."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eval.cache.stage_cache import StageCache
from tests.pipelines.conftest import Lcm

FrameCache = Callable[[], set[str]]


@pytest.fixture
def kept(tmp_path: Path, lcm: Lcm) -> FrameCache:
    """A cache with an entry of three stages and a vector; tells what is left of it."""
    cache = StageCache(directory=str(tmp_path / "cache" / "stages"))
    for stage in ("checkpoints", "pools", "ranked"):
        cache.write(stage, "a" * 32, b"content")
    (tmp_path / "cache" / "embeddings").mkdir()
    (tmp_path / "cache" / "embeddings" / "rows").write_bytes(b"1")
    return lambda: {path.parent.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("arguments", "removed"),
    [
        (["prune"], set()),
        (["prune", "stages.max_gib=0"], {"checkpoints", "pools", "ranked"}),
        (["prune", "checkpoints"], set()),
        (["prune", "checkpoints", "stages.max_gib=0"], {"checkpoints"}),
        (["prune", "checkpoints", "ranked", "stages.max_gib=0"], {"checkpoints", "ranked"}),
        (["clear"], {"checkpoints", "pools", "ranked"}),
        (["clear", "pools"], {"pools"}),
        (["clear", "embeddings"], {"embeddings"}),
        ([], set()),
    ],
    ids=lambda part: " ".join(sorted(part)) if isinstance(part, set) else " ".join(part),
)
def test_what_is_named_is_removed_and_nothing_else(
    arguments: list[str], removed: set[str], kept: FrameCache, lcm: Lcm
) -> None:
    done = lcm("cache", *arguments)
    assert done.code == 0, done.stderr
    assert kept() == {"checkpoints", "pools", "ranked", "embeddings"} - removed
    stages = len(removed - {"embeddings"})
    assert not arguments or f"Removed: {stages} stages" in done.stdout
