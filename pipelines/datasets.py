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

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from eval.dataset.beir import write_beir
from eval.dataset.card import DATASETS_DIR, Card, PinnedFile, Release, address_of, folder, read_pinned
from eval.dataset.collection import check_ids, collection_of, document_ids, write_trec_qrels, write_trec_run
from eval.dataset.dataset import Dataset
from eval.dataset.files import files_of, identified
from eval.dataset.ledger import KeepsLedger, ledger_text
from eval.dataset.sample import bundled_directory
from eval.download import Remote, download
from eval.run import Run
from lcm.errors import DatasetError, LcmError
from lcm.files import file_name
from pipelines.config import building, composition, conf_folder
from pipelines.config.arguments import told_apart
from pipelines.config.check import meant
from pipelines.steps.point import dataset_described
from pipelines.steps.runs import dataset_of_run, named_messages, runs_alike
from pipelines.views.progress import downloading
from pipelines.views.terminal import kept, say

DATASETS_URL = "LCM_DATASETS_URL"

_FORMATS = ("beir", "trec")


def main(arguments: Sequence[str]) -> int:
    """`lcm datasets [NAME ...]`, `lcm datasets get | ledger NAME`, `lcm datasets write [RUN ...] to=FOLDER`."""
    actions = {"get": _get, "ledger": _ledger, "write": _write}
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

    def state(file: PinnedFile) -> str:
        try:
            read_pinned(where, [file])
        except DatasetError as error:
            return str(error)
        return f"ok, sha256 {file.sha256}"

    try:
        where = folder(card, str(bundled_directory(card.name)) if card.bundled else None)
    except DatasetError as error:
        return [f"  missing        {error}"]
    return [f"  expected in    {where}", *(f"  {file.path}: {state(file)}" for file in card.files)]


def _releases(card: Card) -> list[str]:
    """The releases, where their files are expected, and which of them are there, whatever they are called."""
    told = []
    for release in card.releases:
        sizes = [pin.size_bytes for pin in release.files if pin.size_bytes is not None]
        size = f" ({sum(sizes) / 1e6:,.1f} MB)" if len(sizes) == len(release.files) else ""
        told.append(f"  release        {release.name}: {release.title}{size}")
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
    wrong = (
        f"  {path} is not the file of that name: sha256 is {strangers[path]}" for path in strangers if path in pins
    )
    lines += wrong
    return lines if any(one.release for one in found) else [*lines, "  no release     is there"]


def card_of(name: str) -> Card:
    """The card of a choice of the group `dataset`."""
    known = conf_folder.groups()["dataset"]
    if (alone := name.removeprefix("dataset=")) != name and alone in known:
        raise DatasetError(f"{name}: here a dataset is named by a word alone, `lcm datasets {alone}`")
    if name not in known:
        raise DatasetError(f"no such dataset: {name!r}; choose one of: {', '.join(known)}{meant(alone, known)}")
    card: Card = building.class_of("dataset", name).card  # type: ignore[attr-defined]
    return card


def _get(arguments: Sequence[str]) -> int:
    """`lcm datasets get NAME [release=NAME] [accept_licence=true] [base_url=URL] [into=FOLDER]`."""
    command = told_apart(arguments, ("release", "accept_licence", "base_url", "into"), is_configured=False)
    card = card_of(command.word("name one dataset to get: lcm datasets get NAME [release=NAME]"))
    base_url = command.settings.get("base_url") or os.environ.get(DATASETS_URL) or None
    releases = _chosen(card, command.settings.get("release"), base_url)
    into, there = command.settings.get("into"), os.environ.get(DATASETS_DIR)
    if into is None and not there:
        told = f"the folder that is to hold {card.name}/, or name one with into=FOLDER"
        raise DatasetError(f"set {DATASETS_DIR} to {told}")
    where = Path(f"{there}/{card.name}" if into is None else into).expanduser()
    for licence in dict.fromkeys(release.licence or card.licence for release in releases):
        _accept(card, licence, is_accepted=command.flag("accept_licence"))
    for release in releases:
        _download(card, release, where, base_url)
    kept(where)
    return 0


def _chosen(card: Card, name: str | None, base_url: str | None) -> list[Release]:
    """The releases that are asked for; where none is named, the only one that is still to be had from its origin."""
    published = [release for release in card.releases if release.url is not None]
    there = list(card.releases) if base_url is not None else published
    if not there:
        raise DatasetError(f"{card.name} cannot be downloaded; how to get it: {card.how_to_get}")
    usual = published or there
    names = ", ".join(f"{release.name} ({release.title})" for release in there)
    if name is None and len(usual) > 1:
        told = f"name one, release={usual[0].name}; there are {names}"
        raise DatasetError(f"{card.name} has {len(usual)} releases: {told}")
    chosen = usual if name in (None, "all") else [release for release in there if release.name == name]
    if not chosen:
        raise DatasetError(f"{card.name} has no release {name!r} that can be downloaded; choose one of: {names}")
    return chosen


def _accept(card: Card, licence: str, *, is_accepted: bool) -> None:
    say(f"{card.title}\nlicence: {licence}\norigin: {card.origin}")
    if is_accepted:
        return
    if not sys.stdin.isatty():
        raise DatasetError(f"{card.name} is under {licence}: say accept_licence=true if you accept it")
    answer = ""
    with suppress(EOFError):
        answer = input("Do you accept the licence? Type yes: ")
    if answer.strip().lower() != "yes":
        raise DatasetError(f"{card.name} is not downloaded: its licence was not accepted")


def _download(card: Card, release: Release, where: Path, base_url: str | None) -> None:
    with downloading() as shown:
        for pin in release.files:
            address = address_of(release, pin, card.name, base_url)
            assert address is not None  # a release is chosen if it has one
            path = where / pin.path
            remote = Remote(address, pin.sha256, pin.size_bytes, f"base_url=URL or {DATASETS_URL}")
            with shown(pin.path, pin.size_bytes) as progress:
                download(remote, path, progress)
            if len(release.files) == 1:
                say(f"{pin.path}: {path.stat().st_size / 1e6:,.1f} MB, sha256 {pin.sha256}")
    if len(release.files) > 1:
        say(f"{release.name}: {len(release.files)} files, all checked by their sha256")


def _ledger(arguments: Sequence[str]) -> int:
    """`lcm datasets ledger NAME [into=FILE] [dataset.KEY=VALUE]`."""
    command = told_apart(arguments, ("into",))
    name = command.word("name one dataset: lcm datasets ledger NAME [into=FILE]")
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


def _write(arguments: Sequence[str]) -> int:
    """`lcm datasets write [RUN ...] to=FOLDER [dataset=NAME] [formats=beir,trec]`."""
    command = told_apart(arguments, ("to", "formats"))
    formats = command.settings.get("formats", ",".join(_FORMATS)).strip("[]").split(",")
    if unknown := [one for one in formats if one not in _FORMATS]:
        raise LcmError(f"formats must be some of {', '.join(_FORMATS)}, got {unknown[0]!r}")
    if "to" not in command.settings:
        raise LcmError("to=FOLDER is missing: the folder that is to hold the files")
    to = Path(command.settings["to"]).expanduser()
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise LcmError(f"to={to} holds something already: name a new folder")
    runs = runs_alike([Path(word) for word in command.words]) if command.words else []
    if runs and command.overrides:
        raise LcmError(f"a run says which dataset it was made on: leave {command.overrides[0]} out, or the run")
    dataset = dataset_of_run(runs[0]) if runs else dataset_described(composition.composed(command.overrides))
    collection, notes = collection_of(dataset)
    if "trec" in formats:  # before anything is written
        check_ids(collection.queries["query_id"], "query id")
        check_ids(collection.corpus["document_id"], "document id")
    if "beir" in formats:
        write_beir(to, collection)
    if "trec" in formats:
        write_trec_qrels(to / "qrels.trec", collection.qrels)
        for run in runs:
            _write_run(run, dataset, to / "runs")
    candidates = "" if collection.candidates is None else ", what each query may be answered with (top_ranked.jsonl)"
    say(
        f"{dataset.name} ({dataset.protocol}): {len(collection.corpus)} documents, {len(collection.queries)} queries, "
        f"{len(collection.qrels)} judgements{candidates}"
    )
    for note in (*notes, *dataset.notes):
        say(f"note: {note}")
    kept(to)
    return 0


def _write_run(run: Run, dataset: Dataset, to: Path) -> None:
    """Each arm as a TREC run of its own."""
    for (arm,), named in named_messages(run.ranked_messages, document_ids(dataset)).group_by(
        "arm", maintain_order=True
    ):
        path = to / f"{run.name}.{file_name(arm)}.trec"
        if not write_trec_run(path, named, tag=f"{run.name}.{arm}".replace(" ", "_")):
            say(f"note: {path.name}: its own scores do not fall with its ranks, so 1 / rank stands in their place")
