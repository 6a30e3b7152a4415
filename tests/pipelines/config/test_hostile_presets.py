"""A preset from anybody has nothing called but components; what it asks for else is refused in one line."""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from shutil import copytree, rmtree

import pytest

from lcm import consent
from pipelines import cli
from pipelines.config.trust import offered
from tests.support.hostile_doors import QUICK, READ_ONLY, hostile_commands, prepared
from tests.support.hostile_presets import CANARY, FOLDER, HostilePreset, hostile_presets

pytestmark = pytest.mark.usefixtures("no_progress")

PRESETS = list(hostile_presets())
FIRST = list({preset.family: preset for preset in reversed(PRESETS)}.values())
"""Of each family."""


@pytest.fixture(autouse=True)
def nobody_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LCM_TRUST", "LCM_ALLOWED_HOSTS", "LCM_ALLOWED_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_there_are_sixty_in_ten_families() -> None:
    assert len(PRESETS) >= 60
    assert len(FIRST) >= 10


@pytest.mark.parametrize("presets", [FIRST, pytest.param(PRESETS, marks=pytest.mark.full)], ids=["first", "all"])
def test_none_runs_anything_and_each_is_refused_in_one_line(
    presets: list[HostilePreset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\n".join(_wrong(presets, tmp_path, monkeypatch, capsys)) == ""


def _wrong(
    presets: Sequence[HostilePreset],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[str]:
    for i, preset in enumerate(presets):
        folder, canary = tmp_path / f"preset-{i}", tmp_path / f"canary-{i}"
        for path, text in preset.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text.replace(CANARY, str(canary)).replace(FOLDER, str(folder)))
        monkeypatch.syspath_prepend(str(folder))
        is_searching = any("searchpath" in argument for argument in preset.arguments)
        search = () if is_searching else (f"hydra.searchpath=[file://{folder}]",)
        capsys.readouterr()
        quick = [
            one for one in QUICK if one.partition("=")[0] not in {asked.partition("=")[0] for asked in preset.arguments}
        ]
        code = cli.run(["evaluate", *preset.arguments, *search, *quick])
        said = capsys.readouterr().err
        told = f"{preset.family}: {preset.files} {preset.arguments}: exit code {code}, {said}"
        if canary.exists():
            yield f"RAN: {told}"
        elif code != cli.BAD_INPUT or said.count("\n") != 1 or preset.names not in said:
            yield f"not refused in one line that names {preset.names}: {told}"


@pytest.mark.parametrize("choice", ["link", "link.yaml", "/decay/link.yaml@decay", "/system/link.yaml@_global_"])
def test_no_link_out_of_its_folder_is_taken(choice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "outside.yaml").write_text("fusion:\n  dense_weight: 0.123\n")
    for group in ("system", "decay"):
        (tmp_path / "preset" / group).mkdir(parents=True)
        (tmp_path / "preset" / group / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    text = f"# @package _global_\ndefaults:\n  - {choice}\n  - _self_\n"
    (tmp_path / "preset" / "system" / "evil.yaml").write_text(text)
    searched = f"hydra.searchpath=[file://{tmp_path / 'preset'}]"
    assert cli.run(["evaluate", "system=evil", searched, "--cfg", "job"]) == cli.BAD_INPUT
    told = capsys.readouterr()
    assert "lies outside of" in told.err
    assert "0.123" not in told.out


def test_no_space_searches_over_what_is_the_users_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "preset" / "space").mkdir(parents=True)
    (tmp_path / "preset" / "space" / "evil.yaml").write_text(f"stages.directory: {{choices: [{tmp_path}, null]}}\n")
    searched = f"hydra.searchpath=[file://{tmp_path / 'preset'}]"
    assert cli.run(["tune", "space=evil", searched, "study.trials=1", "embedder=hashing"]) == cli.BAD_INPUT
    assert "space: stages.directory is yours to say" in capsys.readouterr().err


def test_none_runs_at_any_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of each family, at one door of twelve, by turns; with LCM_HOSTILE_DOORS=all every preset at every
    door, which takes half an hour."""
    presets, every = (PRESETS, 1) if os.environ.get("LCM_HOSTILE_DOORS") == "all" else (FIRST, 12)
    tried, wrong = tried_at_each_door(presets, every, tmp_path, monkeypatch, capsys)
    assert "\n".join(wrong) == ""
    assert len(tried) > 12
    assert sum(tried.values()) > 12 / every * len(presets)


@pytest.mark.parametrize("override", ["trust=[evil]", "hydra.searchpath=[pkg://evil]", "tracking.uri=sqlite:////tmp/x"])
def test_an_exported_preset_says_nothing_that_is_the_users_to_say(
    override: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What import prints is a command, and what a command line says is the user's word."""
    for kind in ("system", "experiment"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "theirs.yaml").write_text("# @package _global_\n")
    (tmp_path / "provenance.json").write_text(json.dumps({"overrides_beside": [override], "config_hash": "0"}))
    assert cli.run(["import", str(tmp_path)]) == cli.BAD_INPUT
    assert f"overrides_beside: {override.partition('=')[0]} is yours to say" in capsys.readouterr().err


def tried_at_each_door(
    presets: Sequence[HostilePreset],
    every: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> tuple[Counter[str], list[str]]:
    """Door -> how many presets came in there, each at one door of so many; and what went wrong.

    What a command looks up are components alone, and at a door that only reads those of its own configuration.
    """
    tried: Counter[str] = Counter()
    wrong: list[str] = []
    looked_up: list[str] = []
    real = consent.defined
    monkeypatch.setattr(consent, "defined", lambda name: looked_up.append(name) or real(name))  # type: ignore[func-returns-value]
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.chdir(kept)
    for command in prepared():
        assert cli.run(list(command)) == 0, capsys.readouterr().err
    for i, preset in enumerate(presets):
        here, canary = copytree(kept, tmp_path / f"doors-{i}" / "here"), tmp_path / f"doors-{i}" / "canary"
        monkeypatch.chdir(here)
        (here / "evil.py").write_text(preset.files.get("evil.py", "").replace(CANARY, str(canary)))
        monkeypatch.syspath_prepend(str(here))
        for door, command in islice(hostile_commands(preset, here, canary), i % every, None, every):
            capsys.readouterr()
            looked_up.clear()
            code = cli.run(list(command))
            said = capsys.readouterr().err
            tried[door] += 1
            own = READ_ONLY.get(door, offered()[""])
            told = f"{door}: {preset.family}: {preset.files}: exit code {code}, {said}"
            if canary.exists():
                canary.unlink()
                wrong.append(f"RAN: {told}")
            if strange := {name for name in looked_up if name not in own and not name.startswith("eval.measures.")}:
                wrong.append(f"LOOKED UP {strange}: {told}")
            if code not in (0, 1, cli.BAD_INPUT) or (code == cli.BAD_INPUT and len(said.splitlines()) > 1):
                wrong.append(f"NOT IN ONE LINE: {told}")
        rmtree(here)
    return tried, wrong
