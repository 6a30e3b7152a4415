"""Which tuned settings are lost on the way into a plugin."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lcm.plugins.settings.tables import TABLES
from pipelines.config import building, composition
from pipelines.export import ExportSource, export
from pipelines.transfer import TunedSetting, tuned_settings

DEFAULT = ["system=lancedb_pro"]
TUNED = [*DEFAULT, "fusion.dense_weight=0.9", "fusion.lexical_weight=0.2", "reranker=cosine", "annotation.expiry=false"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], dict[str, TunedSetting]]:
    """Settings that a memory ignores -> what became of the tuned ones."""
    default, tuned = (building.resolved(composition.composed(one)) for one in (DEFAULT, TUNED))
    folder: Path = tmp_path_factory.mktemp("preset") / "out"
    target = export(ExportSource(tuned, {"kind": "overrides"}), folder, "lost", ["lancedb_pro"])["targets"]
    missing = target["lancedb_pro"]["not_expressible"]

    def told(ignored: Sequence[str]) -> dict[str, TunedSetting]:
        return {one.key: one for one in tuned_settings(default, tuned, TABLES["lancedb_pro"], missing, ignored)}

    return {ignored: told(ignored) for ignored in [(), ("retrieval.bm25Weight",), ("retrieval",), ("decay",)]}


def test_all_that_was_tuned_is_told_and_what_the_plugin_cannot_be_told_is_lost(
    found: dict[tuple[str, ...], dict[str, TunedSetting]],
) -> None:
    """The plugin cannot be told of other keys either, which nobody tuned."""
    settings = found[()]
    assert settings.keys() == {"fusion.dense_weight", "fusion.lexical_weight", "reranker", "annotation.expiry"}
    assert settings["fusion.dense_weight"] == TunedSetting("fusion.dense_weight", 0.7, 0.9)
    assert (settings["reranker"].default, settings["reranker"].tuned) == ("NoReranker", "Cosine")
    assert {key for key, one in settings.items() if one.lost} == {"reranker", "annotation.expiry"}
    assert settings["annotation.expiry"].lost.startswith("cannot be told: what a memory is filed under")


def test_what_the_memory_ignores_is_lost(found: dict[tuple[str, ...], dict[str, TunedSetting]]) -> None:
    """A path stands for all that lies below it."""
    one = found["retrieval.bm25Weight",]
    assert one["fusion.lexical_weight"].lost == "the memory ignores retrieval.bm25Weight"
    assert not one["fusion.dense_weight"].lost
    assert found["retrieval",]["fusion.dense_weight"].lost == "the memory ignores retrieval.vectorWeight"
    assert found["decay",] == found[()]  # which nobody tuned
