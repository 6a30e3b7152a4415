"""List the datasets: what is known, where it is expected, whether it is there."""

from collections.abc import Sequence

from rich.table import Table

from eval.datasets.card import folder, read_pinned
from eval.datasets.sample import bundled_directory
from lcm.errors import DatasetError
from pipelines import configuration
from pipelines.terminal import console

HELP = """lcm datasets [NAME ...]

List the datasets: what they are, their licence, where their files are expected, their checksums, whether the files
are there and are the pinned ones, and how to get them. Folders are looked for in $LCM_DATASETS_DIR; `dataset.directory`
names another for one run."""


def main(arguments: Sequence[str]) -> int:
    """`lcm datasets [NAME ...]`."""
    if {"-h", "--help"} & set(arguments):
        console().print(HELP, highlight=False, markup=False)
        return 0
    known = configuration.groups()["dataset"]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise DatasetError(f"no such dataset: {unknown[0]!r}; choose one of: {', '.join(known)}")
    for choice in arguments or known:
        loader = configuration.build(configuration.composed([f"dataset={choice}"]), "dataset")
        card = loader.card
        table = Table(title=f"dataset={choice}", title_justify="left", show_header=False, box=None)
        table.add_row("what", card.title)
        table.add_row("licence", card.licence)
        table.add_row("origin", card.origin)
        table.add_row("how to get it", card.how_to_get)
        try:
            where = folder(card, loader.directory or (str(bundled_directory()) if card.bundled else None))
        except DatasetError as error:
            table.add_row("expected", str(error))
        else:
            table.add_row("expected in", str(where))
            for file in card.files:
                try:
                    read_pinned(where, [file])
                    state = "ok"
                except DatasetError as error:
                    state = str(error)
                table.add_row(file.path, f"sha256 {file.sha256}: {state}")
        console().print(table, highlight=False, markup=False)
        console().print()
    return 0
