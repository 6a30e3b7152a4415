"""A preset from anybody has nothing called but components; what it asks for else is refused in one line."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from lcm import consent
from pipelines import cli
from tests.support.hostile_presets import CANARY, FOLDER, HostilePreset, hostile_presets

QUICK = ("embedder=hashing", "arms=none", "tracking=none", "measures.latency.queries=0", "means.resamples=20")
PRESETS = list(hostile_presets())
FAMILIES = Counter(preset.family for preset in PRESETS)


@pytest.fixture(autouse=True)
def nobody_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LCM_TRUST", "LCM_ALLOWED_HOSTS", "LCM_ALLOWED_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_there_are_sixty_in_ten_families() -> None:
    assert len(PRESETS) >= 60
    assert len(FAMILIES) >= 10


def test_the_first_of_each_family_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {preset.family: preset for preset in reversed(PRESETS)}
    assert "\n".join(_wrong(list(first.values()), tmp_path, monkeypatch, capsys)) == ""


@pytest.mark.full
def test_none_runs_anything_and_each_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "\n".join(_wrong(PRESETS, tmp_path, monkeypatch, capsys)) == ""


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
        code = cli.run(["evaluate", *preset.arguments, *search, *QUICK])
        said = capsys.readouterr().err
        told = f"{preset.family}: {preset.files} {preset.arguments}: exit code {code}, {said}"
        if canary.exists():
            yield f"RAN: {told}"
        elif code != cli.BAD_INPUT or said.count("\n") != 1 or preset.names not in said:
            yield f"not refused in one line that names {preset.names}: {told}"


def test_what_is_only_read_is_never_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By import, export and log: what they look up are the components of their own command, and no name of the file."""
    target = "lcm.retrieval.embedder.export.os.system"
    looked_up: list[str] = []
    real = consent.defined
    monkeypatch.setattr(consent, "defined", lambda name: looked_up.append(name) or real(name))  # type: ignore[func-returns-value]
    run = tmp_path / "run"
    (run / "system").mkdir(parents=True)
    hostile = f"decay:\n  _target_: {target}\n  command: touch {tmp_path}/canary\n"
    (run / "system" / "evil.yaml").write_text(f"# @package _global_\n{hostile}")
    (run / "config.yaml").write_text(hostile)
    (run / "summary.json").write_text('{"kind": "run", "config_hash": "0", "commit": null, "measures": {}}')
    for command in (
        ["import", str(run)],
        ["log", str(run), "tracking=none"],
        ["export", str(run), "to=out", "tracking=none"],
    ):
        cli.run(command)
    capsys.readouterr()
    assert not (tmp_path / "canary").exists()
    assert not [name for name in looked_up if "os" in name.split(".")]
