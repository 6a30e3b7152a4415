"""The wheel is whole: installed alone and used elsewhere, it finds its configuration, its sample and its licences."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("wheel")]  # one worker builds, once


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(root))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed") / "site"
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder),
        str(wheel),
    )
    return folder


def python(site: Path, folder: Path, *arguments: str) -> str:
    """Run Python in `folder` with the installed project before any checkout."""
    return run(sys.executable, *arguments, cwd=folder, env=os.environ | {"PYTHONPATH": str(site)})


def test_the_wheel_holds_the_packages_the_configuration_and_the_licences(wheel: Path, root: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    conf = {str(path.relative_to(root)) for path in (root / "conf").rglob("*.yaml")}
    assert {f"pipelines/{name}" for name in conf} <= set(names)
    assert {name.partition("/")[0] for name in names if ".dist-info" not in name} == {"lcm", "eval", "pipelines"}
    licences = {name.partition(".dist-info/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "data/sample/LICENSE", "data/sample_long/LICENSE"}
    assert "lcm/store/schema_1.sql" in names


def test_an_installed_copy_does_not_lean_on_the_checkout(site: Path, tmp_path: Path, root: Path) -> None:
    code = """
import sys, pipelines.evaluate, pipelines.config.conf_folder, eval.dataset.sample
print(pipelines.config.conf_folder.conf_dir(), eval.dataset.sample.bundled_directory())
print(*(m.__file__ for m in sys.modules.values() if m.__name__.split(".")[0] in ("lcm", "eval", "pipelines")))
"""
    paths = [Path(path) for path in python(site, tmp_path, "-c", code).split()]
    assert len(paths) > 10
    assert all(path.is_relative_to(site) and not path.is_relative_to(root) for path in paths)


def test_an_installed_copy_evaluates_its_sample(site: Path, tmp_path: Path) -> None:
    settings = ("embedder=hashing", "tracking=none", "measures.latency.queries=0", "cache=false", "hydra.run.dir=run")
    python(site, tmp_path, "-m", "pipelines.cli", "evaluate", *settings)
    assert (tmp_path / "run" / "summary.json").is_file()


def test_an_installed_copy_finds_its_sample_to_be_the_pinned_one(site: Path, tmp_path: Path) -> None:
    told = python(site, tmp_path, "-m", "pipelines.cli", "datasets", "sample").splitlines()
    states = [line for line in told if "sha256" in line]
    assert len(states) == 5
    assert all(": ok, sha256 " in line for line in states)
