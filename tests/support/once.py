"""Folders that are made once: for all workers of a run of the tests, or for as long as the environment stands."""

import hashlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from filelock import FileLock

Make = Callable[[Path], object]
"""Fills an empty folder."""


def made_once(factory: pytest.TempPathFactory, name: str, make: Make) -> Path:
    """Return a folder that the first worker to ask fills and all others wait for."""
    shared = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # the workers' folders are neighbours: what is beside them is shared
        shared = shared.parent
    return _made(shared / "made-once" / name, make)


def made_for_environment(name: str, sources: Iterable[Path], packages: Iterable[str], make: Make) -> Path:
    """Return a folder beside the environment's packages, filled anew when the sources or packages change."""
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(path.read_bytes())
    for package in packages:
        digest.update(f"{package} {importlib.metadata.version(package)}\n".encode())
    is_ours = sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK)
    place = Path(sys.prefix if is_ours else tempfile.gettempdir()) / "lcm-tests"
    return _made(place / f"{name}-{digest.hexdigest()[:16]}", make)


def _made(folder: Path, make: Make) -> Path:
    """Fill the folder in place, since what is written may name its own path; a half-filled one is filled anew."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    done = folder.with_name(f"{folder.name}.done")
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder
