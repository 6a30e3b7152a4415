"""lcm datasets [NAME ...]
lcm datasets get NAME [release=NAME] [accept_licence=true] [base_url=URL] [into=FOLDER]
lcm datasets ledger NAME [into=FILE] [dataset.KEY=VALUE]
lcm datasets write [RUN ...] to=FOLDER [dataset=NAME] [dataset.KEY=VALUE] [formats=beir,trec]

List the datasets: what they are, their licence, the releases that are known by their checksums, where their files are
expected, whether they are there and are what they are called, and how to get them. Folders are looked for in
$LCM_DATASETS_DIR; `dataset.directory` names another for one run.

`get` downloads a release into $LCM_DATASETS_DIR/NAME, or into=FOLDER, once its licence is accepted; what was cut off
goes on where it was, and a file of another sha256 is refused. base_url, or $LCM_DATASETS_URL, names a mirror that is
laid out as $LCM_DATASETS_DIR. release=all takes all that can be had.

`ledger` tells which evidence of a dataset is corrected, line by line (question, was, becomes, in_doubt, reason, source,
version): what dataset.evidence=repaired goes by.

`write` gives a dataset to other tools: as a folder in the layout of BEIR (corpus.jsonl, queries.jsonl, qrels/test.tsv,
and top_ranked.jsonl where a query may not be answered with everything), with its judgements as qrels.trec. Of kept
runs, named by their folders, the dataset is written that they were made on, and what each arm ranked in runs/."""

from collections.abc import Sequence
from pathlib import Path

from eval.dataset.card import Card, PinnedFile, Release, folder, read_pinned
from eval.dataset.published import files_of, identified
from eval.dataset.sample import bundled_directory
from lcm.errors import DatasetError
from pipelines.config import conf_folder
from pipelines.steps.dataset_getting import card_of, get
from pipelines.steps.dataset_ledger import ledger
from pipelines.steps.dataset_writing import write
from pipelines.views.terminal import say


def main(arguments: Sequence[str]) -> int:
    """`lcm datasets [NAME ...]`, `lcm datasets get | ledger NAME`, `lcm datasets write [RUN ...] to=FOLDER`."""
    actions = {"get": get, "ledger": ledger, "write": write}
    if arguments and arguments[0] in actions:
        return actions[arguments[0]](arguments[1:])
    cards = [(choice, card_of(choice)) for choice in arguments or conf_folder.groups()["dataset"]]
    for choice, card in cards:
        lines = [
            f"dataset={choice}",
            f"  what           {card.title}",
            f"  licence        {card.licence}",
            f"  origin         {card.origin}",
            f"  how to get it  {card.how_to_get}",
        ]
        lines += _releases(card) if card.releases else _files(card) if card.files else []
        say("\n".join([*lines, ""]))
    return 0


def _files(card: Card) -> list[str]:
    """Where the pinned files are expected, and whether they are there."""
    try:
        where = folder(card, str(bundled_directory(card.name)) if card.bundled else None)
    except DatasetError as error:
        return [f"  missing        {error}"]
    return [f"  expected in    {where}", *(f"  {file.path}: {_state(where, file)}" for file in card.files)]


def _releases(card: Card) -> list[str]:
    """The releases, where their files are expected, and which of them are there, whatever they are called."""
    told = [f"  release        {release.name}: {release.title}{_size(release)}" for release in card.releases]
    try:
        where = folder(card, None)
    except DatasetError as error:
        return [*told, f"  missing        {error}"]
    found = [identified(card, path) for path in files_of(where)]
    pins = {pin.path for release in card.releases for pin in release.files}
    lines = [*told, f"  expected in    {where}"]
    for release in card.releases:
        of_release = {one.pin: one.path for one in found if one.release is release}
        if len(release.files) == 1 and of_release:
            ((pin, path),) = of_release.items()
            lines.append(f"  {path.relative_to(where)}: {release.name}, sha256 {pin.sha256}")
        elif of_release:
            lines.append(f"  {release.name}: {len(of_release)} of {len(release.files)} files are there")
    strangers = {str(one.path.relative_to(where)): one.pin.sha256 for one in found if one.release is None}
    lines += [
        f"  {path} is not the file of that name: sha256 is {digest}"
        for path, digest in strangers.items()
        if path in pins
    ]
    return lines if any(one.release for one in found) else [*lines, "  no release     is there"]


def _size(release: Release) -> str:
    sizes = [pin.size_bytes for pin in release.files if pin.size_bytes is not None]
    return f" ({sum(sizes) / 1e6:,.1f} MB)" if len(sizes) == len(release.files) else ""


def _state(where: Path, file: PinnedFile) -> str:
    try:
        read_pinned(where, [file])
    except DatasetError as error:
        return str(error)
    return f"ok, sha256 {file.sha256}"
