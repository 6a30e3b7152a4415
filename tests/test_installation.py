"""The wheel is whole: installed alone and used elsewhere, it finds its configuration, its sample and its licences; and
beside packages of the same names it says whose they are."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy
import pytest

import lcm

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]  # one worker builds, once


def run(*command: str, **options: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """A folder of the sdist and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("release")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(root))
    return folder


@pytest.fixture(scope="module")
def wheel(release: Path) -> Path:
    (built,) = release.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the installed wheel and nothing else."""
    folder = tmp_path_factory.mktemp("installed") / "site"
    install(wheel, sys.executable, "--target", str(folder))
    return folder


def install(wheel: Path, python: str, *where: str) -> None:
    run(
        *(sys.executable, "-m", "pip", "--python", python, "install"),
        *("--quiet", "--no-deps", "--no-index", *where, str(wheel)),
    )


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Path:
    """A virtual environment of the wheel, which finds what it depends on and no checkout."""
    folder = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    install(wheel, str(folder / "bin" / "python"))
    (packages_of(folder) / "dependencies.pth").write_text(str(Path(numpy.__file__).parents[1]))
    return folder


def packages_of(environment: Path) -> Path:
    (folder,) = environment.glob("lib/python3*/site-packages")
    return folder


def refused(environment: Path, **variables: str) -> str:
    """The one line with which the command ends that is asked for its version."""
    done = subprocess.run(
        [environment / "bin" / "lcm", "--version"],
        cwd=environment,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def python(site: Path, folder: Path, *arguments: str) -> str:
    """Run Python in `folder` with the installed project before any checkout."""
    return run(sys.executable, *arguments, cwd=folder, env=os.environ | {"PYTHONPATH": str(site)})


def test_the_wheel_holds_the_packages_the_configuration_and_the_licences(wheel: Path, root: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    conf = {str(path.relative_to(root)) for path in (root / "conf").rglob("*.yaml")}
    assert {f"pipelines/{name}" for name in conf} <= set(names)
    tops = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {"lcm", "eval", "pipelines", "lcm_harness.py"}
    licences = {name.partition(".dist-info/licenses/")[2] for name in names if "/licenses/" in name}
    assert licences == {"LICENSE", "data/sample/LICENSE", "data/sample_long/LICENSE"}
    assert "lcm/store/schema_1.sql" in names
    assert {"lcm/py.typed", "eval/py.typed", "pipelines/py.typed"} <= set(names)


def test_an_installed_copy_does_not_lean_on_the_checkout(site: Path, tmp_path: Path, root: Path) -> None:
    code = """
import sys, pipelines.evaluate, pipelines.config.conf_folder, eval.dataset.sample
print(pipelines.config.conf_folder.conf_dir(), eval.dataset.sample.bundled_directory())
print(*(m.__file__ for m in sys.modules.values() if m.__name__.split(".")[0] in ("lcm", "eval", "pipelines")))
"""
    paths = [Path(path) for path in python(site, tmp_path, "-c", code).split()]
    assert len(paths) > 10
    assert all(path.is_relative_to(site) and not path.is_relative_to(root) for path in paths)


@pytest.mark.full
def test_an_installed_copy_evaluates_its_sample(site: Path, tmp_path: Path) -> None:
    settings = ("embedder=hashing", "tracking=none", "measures.latency.queries=0", "cache=false", "hydra.run.dir=run")
    python(site, tmp_path, "-m", "pipelines.cli", "evaluate", *settings)
    assert (tmp_path / "run" / "summary.json").is_file()


def test_an_installed_copy_finds_its_sample_to_be_the_pinned_one(site: Path, tmp_path: Path) -> None:
    told = python(site, tmp_path, "-m", "pipelines.cli", "datasets", "sample").splitlines()
    states = [line for line in told if "sha256" in line]
    assert len(states) == 5
    assert all(": ok, sha256 " in line for line in states)


@pytest.mark.full
def test_a_release_passes_the_check_of_its_index(release: Path) -> None:
    files = sorted(map(str, release.iterdir()))
    assert [Path(name).suffix for name in files] == [".whl", ".gz"]
    told = run(sys.executable, "-m", "twine", "check", "--strict", *files)
    assert told.count("PASSED") == 2


def test_the_sdist_holds_what_builds_documents_and_tests_it(release: Path) -> None:
    (sdist,) = release.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames()}
    assert tops >= {"conf", "data", "docs", "eval", "lcm", "pipelines", "tests", "pyproject.toml", "constraints.txt"}
    assert tops >= {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile"}


def test_what_the_image_copies_is_all_that_the_wheel_is_made_of(wheel: Path, tmp_path: Path, root: Path) -> None:
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (root / "Dockerfile").read_text(), re.MULTILINE)
    for name in " ".join(copied).split():
        copy = shutil.copytree if (root / name).is_dir() else shutil.copy
        copy(root / name, tmp_path / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "out"), str(tmp_path))
    (made,) = (tmp_path / "out").glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in zipfile.ZipFile(made).namelist() if "__pycache__" not in name} == names


def test_the_command_of_an_environment_of_its_own_evaluates_the_sample(environment: Path) -> None:
    command = str(environment / "bin" / "lcm")
    told = f"lcm {lcm.__version__}\n"
    assert run(command, "--version", cwd=environment) == told
    assert run(str(environment / "bin" / "python"), "-m", "lcm", "--version", cwd=environment) == told
    settings = ("embedder=hashing", "tracking=none", "measures.latency.queries=0", "cache=false", "hydra.run.dir=run")
    assert "│ system" in run(command, "evaluate", *settings, cwd=environment)


@pytest.mark.parametrize(
    "package", ["lcm", *(pytest.param(name, marks=pytest.mark.full) for name in ("eval", "pipelines"))]
)
def test_a_package_of_the_same_name_before_ours_is_told_on_one_line(environment: Path, package: str) -> None:
    theirs = environment / "theirs" / package
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("")
    assert refused(environment, PYTHONPATH=str(theirs.parent)) == (
        f"lcm: the package {package!r} that Python finds is not lcm-harness's but {theirs}: "
        "take its folder off PYTHONPATH, or install lcm-harness into an environment of its own"
    )


def test_a_distribution_that_wrote_over_ours_is_named(environment: Path) -> None:
    packages = packages_of(environment)
    (packages / "eval" / "__init__.py").write_text("from eval.tasks import *\n")
    information = packages / "other_evals-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: other-evals\nVersion: 1.0\n")
    (information / "RECORD").write_text("eval/__init__.py,,\nother_evals-1.0.dist-info/METADATA,,\n")
    assert f"not lcm-harness's but {packages / 'eval'} of the distribution other-evals: " in refused(environment)


@pytest.mark.full
def test_parts_of_two_installations_are_not_mixed(environment: Path, site: Path) -> None:
    other = environment / "other"
    other.mkdir()
    (other / "eval").symlink_to(site / "eval")
    told = refused(environment, PYTHONPATH=str(other))
    assert told.startswith(f"lcm: parts of lcm-harness lie in {packages_of(environment)} and ")
    assert str(other) in told


def test_our_packages_are_known_by_saying_no_more_than_whose_they_are(root: Path) -> None:
    said = {name: (root / name / "__init__.py").read_text() for name in ("lcm", "eval", "pipelines")}
    first = {name: text.partition("\n")[0] for name, text in said.items()}
    assert "lcm-harness" in first["lcm"]
    assert "lcm-harness" in first["eval"]
    assert said["pipelines"] == ""
