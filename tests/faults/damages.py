"""Damages: what may become of a file, and what is answered afterwards. As a program: the table of all of them."""

import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lcm.derived import SUM
from tests.faults.kinds import KINDS, Kind, unknown_files
from tests.faults.written_files import Said, ask, at, make

SEED = 20260109
_BITS = 3
"""Flipped in one place each, in three copies."""
_LINES = 3
"""Of an error; a check of what people write lists all that is wrong."""


def damages(content: bytes, older: bytes | None, rng: random.Random) -> Iterator[tuple[str, bytes | None]]:
    """Name and content of what is left of a file; None = a folder stands in its place."""
    yield "emptied", b""
    for share in (25, 50, 75):
        yield f"cut at {share} %", content[: len(content) * share // 100]
    yield "without its last byte", content[:-1]
    for number in range(_BITS if content else 0):
        place = rng.randrange(len(content))
        flipped = bytes([content[place] ^ (1 << rng.randrange(8))])
        yield f"bit flipped, {number}", content[:place] + flipped + content[place + 1 :]
    yield "first 16 bytes zeroed", b"\0" * min(16, len(content)) + content[16:]
    yield "garbage", rng.randbytes(max(64, len(content)))
    yield "not UTF-8", content[: len(content) // 2] + b"\xff\xfe\xfa" + content[len(content) // 2 :]
    try:
        record = json.loads(content)
    except ValueError:
        record = None
    if isinstance(record, dict) and record.pop(SUM, None) is not None:
        yield "without its sum", json.dumps(record, indent=2).encode()
    if older is not None and older != content:
        yield "an older version", older
    yield "a folder", None


def files_of(kind: Kind, place: Path, most: int = 2) -> list[Path]:
    found = [path for path in sorted(place.rglob("*")) if path.is_file()]
    found = [path for path in found if re.fullmatch(kind.pattern, str(path.relative_to(place)))]
    return found[:: max(1, len(found) // most)][:most]


def older_of(path: Path, place: Path) -> bytes | None:
    """Its content before the last talk came, or that of the same file of something else."""
    name = path.relative_to(place)
    for one in (place / f"{name}.older", place / "older" / name, place / str(name).replace("runs/base", "runs/other")):
        if one != path and one.is_file():
            return one.read_bytes()
    return None


_BESIDE = re.compile(r"lcm: (note|warning)|.+: (\d+ (s|min) so far|\d+ of \d+)")
"""Lines that tell of no error: how far the command is, and what it went on from."""


def verdict(said: Said, path: Path, expected: Any, kind: Kind, damage: str) -> str:
    """right, told, remade, or what must not be: raw, silent, unnamed."""
    if said.is_raw:
        return "RAW"
    if said.error is not None:
        names = (path.name, path.parent.name, path.name.partition(".")[0])
        # What a command prints of its work, such as a table, is no line of its error.
        told = said.text if said.text.strip() and said.error.startswith(said.text) else said.error
        lines = [line for line in told.strip().splitlines() if not _BESIDE.match(line)]
        is_named = any(name in said.error for name in names)
        return "told" if is_named and (len(lines) <= _LINES or kind.is_by_hand) else "UNNAMED"
    if repr(said.answer) == repr(expected):
        is_noted = re.search(r"damaged|made again|begun again|again|rebuil|derived|put aside|cannot", said.text)
        return "remade, told" if is_noted else "right"
    if kind.is_by_hand or (kind.is_dated and damage == "an older version") or "put aside" in said.text:
        return "as it says"
    return "SILENT"


def tried(
    kind: Kind, place: Path, whole: Path, expected: Any, most: int = 2, ways: int | None = None
) -> Iterator[tuple[str, str, Said]]:
    """Damage each file of a kind, and ask: the damage, the verdict, and what was said.

    Args:
        most: files of the kind.
        ways: in which each is damaged, drawn by the seed from those after which no other answer is right; None = all.
    """
    rng = random.Random(f"{SEED} {kind.name}")
    for source in files_of(kind, whole, most):
        every = list(damages(source.read_bytes(), older_of(source, whole), rng))
        telling = [one for one in every if not (kind.is_dated and one[0] == "an older version")]
        for damage, content in every if ways is None else rng.sample(telling, ways):
            left = {source: content}
            for other in files_of(kind, whole, sys.maxsize) if kind.is_together else ():
                left[other] = dict(damages(other.read_bytes(), None, rng)).get(damage, b"an older version")
            said = _asked(kind, place, whole, left)
            path = place / source.relative_to(whole)
            yield f"{source.relative_to(whole)}: {damage}", verdict(said, path, expected, kind, damage), said


def answered(kind: Kind, place: Path, whole: Path) -> Any:
    """The answer from undamaged files, which those kinds share that one door reads."""
    if kind.door not in _ANSWERS:
        said = _asked(kind, place, whole)
        assert said.error is None, said.error
        _ANSWERS[kind.door] = said.answer
    return _ANSWERS[kind.door]


_ANSWERS: dict[Callable[[], Any] | None, Any] = {}


def damaged(kind: Kind, place: Path, whole: Path) -> Said:
    """What is said where other words stand in every file of a kind."""
    return _asked(kind, place, whole, dict.fromkeys(files_of(kind, whole, sys.maxsize), b"something else " * 100))


def _asked(kind: Kind, place: Path, whole: Path, left: Mapping[Path, bytes | None] = MappingProxyType({})) -> Said:
    """What is said in a copy where this is left of some files."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place, symlinks=True)
    for source, content in left.items():
        path = place / source.relative_to(whole)
        if content is None:
            path.unlink()
            path.mkdir()
            path, content = path / "something", b"else"
        path.write_bytes(content)
    with at(place):
        return ask(kind.door)  # type: ignore[arg-type]  # not None here


def main(wanted: Callable[[Kind], bool]) -> None:
    """Print a row for each kind, and every try that went wrong."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:  # in memory, for thousands of copies
        place, whole = Path(folder) / "place", Path(folder) / "whole"
        place.mkdir()
        with at(place):
            make(
                place,
                with_study=any(wanted(kind) for kind in KINDS if re.match("study|MLflow|run, receipt", kind.name)),
            )
        place.rename(whole)
        print("of no kind:", unknown_files(whole))
        total = Counter[str]()
        for kind in KINDS:
            if kind.door is None or not wanted(kind):
                continue
            counts, wrong = Counter[str](), defaultdict[str, list[str]](list)
            for name, found, said in tried(kind, place, whole, answered(kind, place, whole), 1):
                counts[found] += 1
                if found.isupper():
                    wrong[found].append(f"{name}: {said.error or said.text}".strip()[:400])
            total += counts
            print(f"| {kind.name} | {counts.total()} | {dict(counts)} |", flush=True)
            for found, tries in wrong.items():
                for one in tries:
                    print(f"    {found}: {one!r}", flush=True)
        print(f"| all | {total.total()} | {dict(total)} |")


if __name__ == "__main__":
    main(lambda kind: bool(re.match("|".join(sys.argv[1:]), kind.name)))
