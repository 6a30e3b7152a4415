"""Files that a test has written, as if they were a release that a card knows by name."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.dataset.card import Release
from eval.dataset.files import files_of, identified


def know(monkeypatch: pytest.MonkeyPatch, loader: Any, directory: Path) -> str:
    """Make all files of the folder one release of the loader's card; returns it as `dataset.directory` wants it."""
    pins = tuple(identified(loader.card, path).pin for path in files_of(directory))
    release = Release("written", "written by a test", pins, is_told=False)
    monkeypatch.setattr(loader, "card", replace(loader.card, releases=(release,)))
    return str(directory)
