"""A key changes with whatever a result depends on, and with nothing else."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

from eval.cache import stage_cache as identities
from eval.cache.stage_cache import Fingerprint, Unidentified, digest, source_digest
from lcm.compaction.summarizer.t5 import T5
from lcm.compaction.summarizer.t5_files import checkpoint_folder, checkpoints
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.fusion import WeightedSum
from lcm.retrieval.ranking.stages.selection import Limit


@dataclass(frozen=True)
class Part:
    number: float = 1.0
    inner: Any = None
    seen: list[int] = field(default_factory=list, init=False)


def key(part: Any) -> str:
    identity = Fingerprint()
    return digest(identity.of(part), identity.modules)


def test_equal_settings_have_one_key_and_other_settings_another() -> None:
    parts = [
        WeightedSum(), WeightedSum(dense_weight=0.6), Limit(n=3), Limit(n=4), Part(), Part(2.0), Part(inner=[1]),
        Part(inner=["1"]), Part(inner=None), Part(inner={"a": 1}), Part(inner=[[1, 2]]), Part(inner=[1, 2]),
        Part(inner=True), Part(inner=1), Part(inner=1.0), Part(inner=pl.DataFrame({"a": [1]})),
        Part(inner=pl.DataFrame({"a": [2]})), Part(inner={1}), Part(inner=Part()),
    ]  # fmt: skip
    keys = [key(part) for part in parts]
    assert keys == [key(replace(part)) for part in parts]
    assert len(set(keys)) == len(parts) - 1  # Part(inner=None) is Part()


def test_what_is_no_setting_changes_nothing(tmp_path: Path) -> None:
    part, plain = Part(), Hashing(dim=64)
    part.seen.append(1)
    assert key(part) == key(Part())
    assert key(plain) == key(CachedEmbedder(plain, tmp_path)) != key(Hashing(dim=32))


def test_a_setting_that_names_files_stands_for_their_content(tmp_path: Path) -> None:
    file, more = tmp_path / "deep" / "rules.md", tmp_path / "more.md"
    file.parent.mkdir()
    named = {"file": file, "folder": tmp_path, "pattern": tmp_path / "**" / "*.md"}
    keys: dict[str, list[str]] = {name: [] for name in named}
    for changed, text in ((file, "one"), (file, "another"), (more, "three"), (tmp_path / "c.txt", "not meant")):
        changed.write_text(text)
        for name, path in named.items():
            keys[name].append(key(Part(inner=str(path))))
    assert {name: [found.index(one) for one in found] for name, found in keys.items()} == {
        "file": [0, 1, 1, 1], "folder": [0, 1, 2, 3], "pattern": [0, 1, 2, 2],
    }  # fmt: skip
    file.unlink()
    assert key(Part(inner=str(file))) not in keys["file"]


def test_a_model_that_came_after_a_run_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the setting names it by a word that is no path."""
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path))
    summarizer, folder = T5(model="t5-small"), checkpoint_folder("t5-small")
    without = Fingerprint().of(summarizer)
    folder.mkdir(parents=True)
    for file in checkpoints()["t5-small"].files:
        (folder / file.name).write_text('{"model_type": "t5"}')
    first = Fingerprint().of(summarizer)
    (folder / "model.safetensors").write_text("other weights")
    second = Fingerprint().of(summarizer)
    assert len({str(one) for one in (without, first, second)}) == 3
    assert Fingerprint().of(summarizer) == second


def test_a_folder_of_everything_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "_MOST_FILES", 3)
    for name in "abcd":
        (tmp_path / name).write_text(name)
    with pytest.raises(Unidentified, match="holds more than 3 files"):
        key(Part(inner=str(tmp_path)))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """The digest of a module's source, read anew."""

    def told(module: str) -> str:
        for cached in (source_digest, *(getattr(identities, f"_{name}") for name in CACHED)):
            cached.cache_clear()
        return source_digest(frozenset({module}))

    yield told
    monkeypatch.undo()
    told("eval.cache.stage_cache")


CACHED = ("source", "foreign_source", "imported", "data_of")


def test_a_component_from_elsewhere_counts_with_the_files_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Callable[[str], str]
) -> None:
    (tmp_path / "elsewhere_fusion.py").write_text("from elsewhere_helper import x\n")
    (tmp_path / "elsewhere_helper.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = told("elsewhere_fusion")
    (tmp_path / "elsewhere_helper.py").write_text("x = -1\n")
    assert told("elsewhere_fusion") != before


def test_the_source_of_what_a_module_imports_counts_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Callable[[str], str]
) -> None:
    files = {
        "lcm/one.py": "from lcm.two import (\n    a,\n    b,\n)\nimport os\n",
        "lcm/two.py": "import lcm.deep.three\n",
        "lcm/deep/three.py": "from lcm.deep import four\n",
        "lcm/deep/four.py": "x = 1\n",
        "lcm/deep/schema.sql": "CREATE TABLE a (b);",
        "lcm/deep/prompts/leaf.jinja": "Say it again.",
        "lcm/other.py": "y = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(identities, "_ROOT", tmp_path)
    seen = [told("lcm.one")]
    for name in files:
        (tmp_path / name).write_text(files[name] + "# changed\n")
        seen.append(told("lcm.one"))
    assert len(set(seen[:7])) == 7
    assert seen[7] == seen[6]  # nothing imports lcm.other


def test_what_asks_a_server_or_cannot_be_told_apart_has_no_key() -> None:
    @dataclass(frozen=True)
    class WorkspaceEvaluator:
        is_online: ClassVar[bool] = True

    nameless = Part(inner=lambda x: x)
    for part in (WorkspaceEvaluator(), object(), nameless, Part(inner=object()), Part(inner=[WorkspaceEvaluator()])):
        with pytest.raises(Unidentified):
            key(part)


def test_a_whole_number_in_the_place_of_one_with_a_fraction_is_the_same_setting() -> None:
    assert Fingerprint().of(WeightedSum(dense_weight=1)) == Fingerprint().of(WeightedSum(dense_weight=1.0))
    assert Fingerprint().of(WeightedSum(dense_weight=1)) != Fingerprint().of(WeightedSum(dense_weight=1.5))
