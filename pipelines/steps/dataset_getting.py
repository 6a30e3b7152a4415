"""Getting a dataset from where it was published, or from a mirror."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.dataset.card import DATASETS_DIR, Card, Release, address_of
from eval.download import Remote, download
from lcm.errors import DatasetError
from pipelines.config import building, conf_folder
from pipelines.config.arguments import told_apart
from pipelines.config.check import meant
from pipelines.views.downloading import downloading
from pipelines.views.terminal import kept, say

DATASETS_URL = "LCM_DATASETS_URL"
_OWN = ("release", "accept_licence", "base_url", "into")
_ALL = "all"


def get(arguments: Sequence[str]) -> int:
    """`lcm datasets get NAME [release=NAME] [accept_licence=true] [base_url=URL] [into=FOLDER]`."""
    command = told_apart(arguments, _OWN, is_configured=False)
    if len(command.words) != 1:
        raise DatasetError("name one dataset to get: lcm datasets get NAME [release=NAME]")
    card = card_of(command.words[0])
    base_url = command.settings.get("base_url") or os.environ.get(DATASETS_URL) or None
    releases = _chosen(card, command.settings.get("release"), base_url)
    folder = _folder(card, command.settings.get("into"))
    for licence in dict.fromkeys(release.licence or card.licence for release in releases):
        _accept(card, licence, is_accepted=command.flag("accept_licence"))
    for release in releases:
        _get(card, release, folder, base_url)
    kept(folder)
    return 0


def card_of(name: str) -> Card:
    """The card of a choice of the group `dataset`."""
    known = conf_folder.groups()["dataset"]
    if (alone := name.removeprefix("dataset=")) != name and alone in known:
        raise DatasetError(f"{name}: here a dataset is named by a word alone, `lcm datasets {alone}`")
    if name not in known:
        raise DatasetError(f"no such dataset: {name!r}; choose one of: {', '.join(known)}{meant(alone, known)}")
    card: Card = building.class_of("dataset", name).card  # type: ignore[attr-defined]
    return card


def _chosen(card: Card, name: str | None, base_url: str | None) -> list[Release]:
    """The releases that are asked for; where none is named, the only one that is still to be had from its origin."""
    published = [release for release in card.releases if release.url is not None]
    there = list(card.releases) if base_url is not None else published
    if not there:
        raise DatasetError(f"{card.name} cannot be downloaded; how to get it: {card.how_to_get}")
    if name == _ALL:
        return published or there
    usual = published or there
    names = ", ".join(f"{release.name} ({release.title})" for release in there)
    if name is None and len(usual) > 1:
        raise DatasetError(
            f"{card.name} has {len(usual)} releases: name one, release={usual[0].name}; there are {names}"
        )
    chosen = usual if name is None else [release for release in there if release.name == name]
    if not chosen:
        raise DatasetError(f"{card.name} has no release {name!r} that can be downloaded; choose one of: {names}")
    return chosen


def _folder(card: Card, into: str | None) -> Path:
    if into is not None:
        return Path(into).expanduser()
    if not os.environ.get(DATASETS_DIR):
        raise DatasetError(
            f"set {DATASETS_DIR} to the folder that is to hold {card.name}/, or name one with into=FOLDER"
        )
    return Path(os.environ[DATASETS_DIR]).expanduser() / card.name


def _accept(card: Card, licence: str, *, is_accepted: bool) -> None:
    say(f"{card.title}\nlicence: {licence}\norigin: {card.origin}")
    if is_accepted:
        return
    if not sys.stdin.isatty():
        raise DatasetError(f"{card.name} is under {licence}: say accept_licence=true if you accept it")
    try:
        answer = input("Do you accept the licence? Type yes: ")
    except EOFError:
        answer = ""
    if answer.strip().lower() != "yes":
        raise DatasetError(f"{card.name} is not downloaded: its licence was not accepted")


def _get(card: Card, release: Release, folder: Path, base_url: str | None) -> None:
    with downloading() as shown:
        for pin in release.files:
            address = address_of(release, pin, card.name, base_url)
            assert address is not None  # a release is chosen if it has one
            path = folder / pin.path
            remote = Remote(address, pin.sha256, pin.size_bytes, f"base_url=URL or {DATASETS_URL}")
            with shown(pin.path, pin.size_bytes) as progress:
                download(remote, path, progress)
            if len(release.files) == 1:
                say(f"{pin.path}: {path.stat().st_size / 1e6:,.1f} MB, sha256 {pin.sha256}")
    if len(release.files) > 1:
        say(f"{release.name}: {len(release.files)} files, all checked by their sha256")
