"""Which files are authored documents, and what each is called."""

import glob
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NoReturn

from lcm.errors import LcmError
from lcm.files import is_below

_log = logging.getLogger(__name__)
_EXTENSIONS = (".md", ".markdown")
_ALWAYS = "memory.md"


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """An authored file that is to be read, with the name of its document."""

    path: Path
    name: str
    """Below the folder that was named, with `/`; of a file that was named itself, its own name."""
    is_wanted: bool
    """Somebody chose it: named it, or wrote a pattern that it matches; or it is `memory.md`."""


def selected_files(paths: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> list[SelectedFile]:
    """The files that paths name, each once, by names that differ.

    Files of one name are told apart by the folders that they lie in, as many as it takes: `a/AGENTS.md`, `b/AGENTS.md`.
    The original names a file by its own name alone, so that the blocks of one take the ids of the other's.

    Args:
        paths: files, folders, and globs of both (`**` = folders below). Of folders Markdown files are taken, but no
            links that lead out of them, devices and pipes.
        include: patterns of names in folders, where `*` matches anything, `/` too; empty = all.
        exclude: patterns of what to leave out there. `memory.md`, however it is written, is never left out.

    Raises:
        LcmError: if a path names nothing, or a folder cannot be read.
    """
    found: dict[Path, SelectedFile] = {}
    for given in paths:
        for path in _named(given):
            files = _in_folder(path, include, exclude) if path.is_dir() else [SelectedFile(path, path.name, True)]
            for file in files:
                found.setdefault(file.path.resolve(), file)
    return _told_apart(found)


def _named(given: str) -> list[Path]:
    path = Path(given).expanduser()
    if path.is_file() or path.is_dir():
        return [path]
    if path.exists():
        raise LcmError(f"authored.paths names {given!r}, which is neither a file nor a folder: take it out")
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207 (absolute too)
    matches = [match for match in matches if match.is_dir() or _is_markdown(match.name)]
    if not matches:
        raise LcmError(f"authored.paths names {given!r}, where there is no file: mend the path, or take it out")
    return matches


def _in_folder(folder: Path, include: Sequence[str], exclude: Sequence[str]) -> Iterator[SelectedFile]:
    for parent, folders, files in os.walk(folder, onerror=_refuse):
        folders.sort()
        for file in sorted(filter(_is_markdown, files)):
            path = Path(parent, file)
            if path.exists() and not (path.is_file() and is_below(path.resolve(), [folder.resolve()])):
                _log.warning("%s is no file below %s and is not read: name it in authored.paths", path, folder)
                continue
            name = path.relative_to(folder).as_posix()
            if file.lower() == _ALWAYS:
                yield SelectedFile(path, name, True)
            elif _matches(name, include or "*") and not _matches(name, exclude):
                yield SelectedFile(path, name, bool(include))


def _refuse(error: OSError) -> NoReturn:
    raise LcmError(
        f"authored.paths names the folder {error.filename!r}, which cannot be read ({error.strerror}): "
        "mend that, or take it out"
    ) from error


def _told_apart(found: dict[Path, SelectedFile]) -> list[SelectedFile]:
    names = {path: file.name for path, file in found.items()}
    while (counts := Counter(names.values())) and max(counts.values()) > 1:
        for path, name in names.items():
            if counts[name] > 1:
                names[path] = "/".join(path.parts[-1 - len(name.split("/")) :])
    return [SelectedFile(file.path, names[path], file.is_wanted) for path, file in found.items()]


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(_EXTENSIONS)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
