"""The files of a run that MLflow keeps."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.tracking.receipts import RECEIPT
from eval.tracking.tables import FOLDER
from lcm.files import write_text


def keep_files(client: Any, run_id: str, folder: Path, summary: Mapping[str, Any], told: Mapping[str, str]) -> None:
    """All files of a folder, and the tables, by one call: each finds out anew where artifacts lie."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".mlflow.") as beside:
        place = Path(beside)
        for file in folder.iterdir():
            if file.is_file() and not _is_ours(file):
                _put(file, place / file.name)
        if summary.get("kind") == "preset":  # whose choices lie in a folder for each group
            for below in folder.iterdir():
                if below.is_dir() and below != place:
                    shutil.copytree(below, place / below.name, copy_function=_put)
        for name, text in told.items():
            write_text(place / FOLDER / name, text)
        client.log_artifacts(run_id, str(place))


def _put(file: str | Path, to: str | Path) -> None:
    """Into another folder, without a copy where the disk allows it."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)


def _is_ours(path: Path) -> bool:
    """Whether a file of a folder says nothing but that it is being worked on, or was logged."""
    return path.name == RECEIPT or path.suffix == ".lock"
