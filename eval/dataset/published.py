"""Files of a dataset as people download them: found by their shape, told apart by their digest.

A loader asks for a file of a shape: `find_file(card, SHAPE, directory, file, pinned=pinned)`. What it finds is a file
of a release that the card names, or an unknown one, which is taken too and told in the notes of the run.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval.dataset.card import Card, PinnedFile, Release, folder
from eval.dataset.fields import unreadable
from eval.download import PARTIAL
from lcm.errors import DatasetError
from lcm.given import files_below, opened, opened_as_is

_HEAD = 1 << 16
_NAMED = 12  # known names in a message
_ARRAY = re.compile(r'\s*\[\s*\{\s*"((?:[^"\\]|\\.)*)"')
_LINES = re.compile(r'\s*\{\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file must look like; enough to tell it from others without reading it whole."""

    words: str
    """After "expected": "a JSON array of objects that begin with question_id"."""
    is_held_by: Callable[[Path], bool]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file of a dataset, and what it is."""

    path: Path
    pin: PinnedFile
    """The release's own; of an unknown file its name and its digest."""
    release: Release | None
    """None: its digest is of no release that the card names."""

    def notes(self) -> tuple[str, ...]:
        """What a run must say of it."""
        if self.release is None:
            return (f"{self.path.name} is no known release, taken as it is (sha256 {self.pin.sha256})",)
        return (f"{self.path.name} is release {self.release.name}: {self.release.title}",) * self.release.is_told


def json_records(container: Literal["array", "lines"], first_keys: Collection[str], any_key: Collection[str]) -> Shape:
    """Records of JSON, plain or compressed by gzip.

    Args:
        container: one array of objects, or an object a line.
        first_keys: with one of which the first object begins.
        any_key: of which one must stand at the beginning of the file, at any depth; empty: none is asked for.
    """
    pattern = _ARRAY if container == "array" else _LINES
    inner = re.compile(f'"(?:{"|".join(map(re.escape, any_key))})"\\s*:')

    def is_held_by(path: Path) -> bool:
        text = head(path)
        begun = pattern.match(text)
        return begun is not None and begun[1] in first_keys and (not any_key or inner.search(text) is not None)

    kind = "a JSON array of objects" if container == "array" else "JSON lines, each an object"
    more = f", with {' or '.join(any_key)} in them" if any_key else ""
    return Shape(f"{kind} that begin with {' or '.join(first_keys)}{more}", is_held_by)


def csv_table(*columns: str) -> Shape:
    """A CSV file, plain or compressed by gzip, with a header that has at least these columns."""

    def is_held_by(path: Path) -> bool:
        header = head(path).partition("\n")[0].rstrip("\r").split(",")
        return set(columns) <= {name.strip('"') for name in header}

    return Shape(f"CSV with the columns {', '.join(columns)}", is_held_by)


def any_of(*shapes: Shape) -> Shape:
    """A file of one of the shapes."""
    words = ", or ".join(shape.words for shape in shapes)
    return Shape(words, lambda path: any(shape.is_held_by(path) for shape in shapes))


def head(path: Path) -> str:
    """How a text file begins, unpacked where it is compressed by gzip; what is no text is told by replacement marks."""
    try:
        with opened(path, DatasetError) as file:
            begun = file.read(_HEAD)
    except OSError:
        return ""
    return begun.decode("utf-8-sig", errors="replace")


def unpacked_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, one at a time, unpacked where it is compressed by gzip.

    Raises:
        DatasetError: if it is damaged.
    """
    try:
        with opened(path, DatasetError) as file:
            yield from file
    except OSError as err:
        raise unreadable(path, err) from err


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, as `unpacked_lines`.

    Raises:
        DatasetError: if it is damaged, or not in UTF-8.
    """
    for number, line in enumerate(unpacked_lines(path), start=1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as err:
            raise DatasetError(f"{path}: line {number}: is not UTF-8 ({err}); write the file in UTF-8") from err


def notes_of(found: Sequence[FoundFile]) -> tuple[str, ...]:
    """What a run must say of files that are read together."""
    if len(found) == 1:
        return found[0].notes()
    unknown = [file.path for file in found if file.release is None]
    known = dict.fromkeys(file.release for file in found if file.release is not None and file.release.is_told)
    taken = f"{len(unknown)} of {len(found)} files are of no known release, taken as they are (the first is {{}})"
    return (
        *(f"the files are of release {release.name}: {release.title}" for release in known),
        *((taken.format(unknown[0]),) if unknown else ()),
    )


def files_of(directory: Path) -> Iterator[Path]:
    """All files below a folder by path, hidden ones and unfinished downloads left out."""
    for path in files_below(directory):
        is_hidden = any(name.startswith(".") for name in path.relative_to(directory).parts)
        if not is_hidden and path.suffix != PARTIAL:
            yield path


def find_file(
    card: Card, shape: Shape, directory: str | None = None, file: str | None = None, *, pinned: bool = False
) -> FoundFile:
    """The one file of a shape, identified.

    Args:
        card: of the dataset.
        shape: what the file must look like.
        directory: as in `folder`.
        file: its path below that folder, or an absolute one; None: the only file of the shape there.
        pinned: refuse what is of no known release.
    Raises:
        DatasetError: if there is none, there are several and `file` names none of them, or it is refused.
    """
    if file is not None:
        path = Path(file).expanduser()
        path = path if path.is_absolute() else folder(card, directory) / path
        if not path.is_file():
            raise DatasetError(f"dataset.file={file} means {path}, which is no file; name one that is there")
        if not shape.is_held_by(path):
            raise DatasetError(f"{path} is not of the shape of {card.name}: expected {shape.words}")
        return identified(card, path, pinned=pinned)
    place = folder(card, directory)
    found = [path for path in files_of(place) if shape.is_held_by(path)]
    if not found:
        raise DatasetError(
            f"{place} holds no file of {card.name}: expected {shape.words}; `lcm datasets {card.name}` tells how to "
            "get one"
        )
    if len(found) > 1:
        names = ", ".join(str(path.relative_to(place)) for path in found)
        raise DatasetError(
            f"{place} holds {len(found)} files of {card.name}: name one, dataset.file={found[0].relative_to(place)} "
            f"(there are {names})"
        )
    return identified(card, found[0], pinned=pinned)


def identified(card: Card, path: Path, *, pinned: bool = False) -> FoundFile:
    """What a file is, by its digest alone: people rename what they download.

    Raises:
        DatasetError: if it is of no known release and `pinned` asks for one; the message holds all digests.
    """
    with opened_as_is(path) as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    for release in card.releases:
        for pin in release.files:
            if pin.sha256 == digest:
                return FoundFile(path, pin, release)
    if pinned:
        known = [(release, pin) for release in card.releases for pin in release.files]
        named = [(release, pin) for release, pin in known if Path(pin.path).name == path.name] or known
        expected = ", ".join(f"{pin.sha256} ({release.name})" for release, pin in named[:_NAMED])
        raise DatasetError(
            f"{path} is not the pinned file: sha256 is {digest}, expected {expected}; get the file again, or take it "
            "as it is with dataset.pinned=false"
        )
    return FoundFile(path, PinnedFile(path.name, digest, path.stat().st_size), None)


def check_part(only: Sequence[str] | None, known: Collection[str], where: object) -> None:
    """Refuse names of `dataset.only` that a dataset does not hold.

    Args:
        only: the names; None: all are taken.
        known: the names that there are, in order.
        where: they are looked for, for the message.
    """
    unknown = [name for name in only or () if name not in known]
    if unknown:
        names = list(known)
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        raise DatasetError(
            f"dataset.only names {unknown[0]!r}, which {where} does not hold; "
            f"it holds {', '.join(names[:_NAMED])}{more}"
        )


def check_only(only: Sequence[str] | None) -> None:
    """Refuse a setting `only` that is no list of names.

    Raises:
        ValueError: "only must be null or a list of names, got []".
    """
    if only is not None and (isinstance(only, str) or not only or not all(isinstance(name, str) for name in only)):
        raise ValueError(f"only must be null or a list of names, got {only!r}")


def part_words(only: Sequence[str] | None) -> str:
    """What a protocol says of the part that is taken; nothing of a whole."""
    return "" if only is None else f" only={','.join(sorted(only))}"
