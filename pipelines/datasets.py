"""lcm datasets [NAME ...]

List the datasets: what they are, their licence, where their files are expected, their checksums, whether the files
are there and are the pinned ones, and how to get them. Folders are looked for in $LCM_DATASETS_DIR; `dataset.directory`
names another for one run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.dataset.card import PinnedFile, folder, read_pinned
from eval.dataset.sample import bundled_directory
from lcm.errors import DatasetError
from pipelines.config import building, composition, conf_folder
from pipelines.views.terminal import say


def main(arguments: Sequence[str]) -> int:
    """`lcm datasets [NAME ...]`."""
    known = conf_folder.groups()["dataset"]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise DatasetError(f"no such dataset: {unknown[0]!r}; choose one of: {', '.join(known)}")
    for choice in arguments or known:
        loader = building.build(composition.composed([f"dataset={choice}"]), "dataset")
        card = loader.card
        lines = [
            f"dataset={choice}",
            f"  what           {card.title}",
            f"  licence        {card.licence}",
            f"  origin         {card.origin}",
            f"  how to get it  {card.how_to_get}",
        ]
        lines += _files(loader) if card.files else []
        say("\n".join([*lines, ""]))
    return 0


def _files(loader: Any) -> list[str]:
    """Where the pinned files are expected, and whether they are there."""
    try:
        where = folder(loader.card, loader.directory or (str(bundled_directory()) if loader.card.bundled else None))
    except DatasetError as error:
        return [f"  missing        {error}"]
    return [f"  expected in    {where}", *(f"  {file.path}: {_state(where, file)}" for file in loader.card.files)]


def _state(where: Path, file: PinnedFile) -> str:
    try:
        read_pinned(where, [file])
    except DatasetError as error:
        return str(error)
    return f"ok, sha256 {file.sha256}"
