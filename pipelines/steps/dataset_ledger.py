"""Telling a dataset's ledger of evidence corrections."""

from collections.abc import Sequence
from pathlib import Path

from eval.dataset.ledger import KeepsLedger, ledger_text
from lcm.errors import DatasetError
from pipelines.config import building, composition
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import kept, say


def ledger(arguments: Sequence[str]) -> int:
    """`lcm datasets ledger NAME [into=FILE] [dataset.KEY=VALUE]`."""
    command = told_apart(arguments, ("into",))
    if len(command.words) != 1:
        raise DatasetError("name one dataset: lcm datasets ledger NAME [into=FILE]")
    name = command.words[0]
    loader = building.build(composition.composed([f"dataset={name}", *command.overrides]), "dataset")
    if not isinstance(loader, KeepsLedger):
        raise DatasetError(f"{name} has no ledger of evidence corrections")
    text = ledger_text(loader.evidence_ledger().corrections)
    into = command.settings.get("into")
    if into is None:
        say(text.rstrip("\n"))
        return 0
    path = Path(into).expanduser()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise DatasetError(f"into={into} exists: name another file, or remove it first") from error
    kept(path, f" ({text.count(chr(10))} corrections)")
    return 0
