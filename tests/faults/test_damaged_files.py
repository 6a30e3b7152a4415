"""Whatever becomes of a file that we wrote: the same answer, or one line that names it, and never another answer."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.damages import answered, damaged, tried
from tests.faults.kinds import KINDS, Kind, unknown_files
from tests.faults.written_files import at, make

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("damaged files")]
_FILES_OF_A_KIND = 1
_WAYS = 1
"""Of damaging one, drawn by a fixed seed; `python -m tests.faults.damages` tries them all."""


def kinds(is_asked: Callable[[Kind], bool]) -> list[object]:
    """Those that are asked for: the first of each thing in CI, the others in the full suite."""
    asked = [kind for kind in KINDS if is_asked(kind)]
    first = {kind.thing: kind for kind in reversed(asked)}
    return [
        pytest.param(kind, marks=[] if kind is first[kind.thing] else pytest.mark.full, id=kind.name) for kind in asked
    ]


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A folder in which every long command was run, in memory where there is one."""
    memory = Path("/dev/shm")  # a folder of our own is made there
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        place = Path(folder) / "place"
        place.mkdir()
        with at(place):
            make(place)
        yield place.rename(Path(folder) / "whole")


def test_every_file_that_is_written_is_of_a_kind_that_is_damaged_here(whole: Path) -> None:
    assert unknown_files(whole) == []


@pytest.mark.parametrize("kind", kinds(lambda kind: kind.door is not None))
def test_a_damaged_file_is_told_or_made_again(kind: Kind, whole: Path) -> None:
    place = whole.with_name("place")
    wrong, tries = [], 0
    for name, verdict, said in tried(kind, place, whole, answered(kind, place, whole), _FILES_OF_A_KIND, _WAYS):
        tries += 1
        if verdict.isupper():
            wrong.append(f"{verdict}: {name}: {said.error or said.text}")
    assert not wrong
    assert tries, "no such file was written"


@pytest.mark.parametrize("kind", kinds(lambda kind: kind.told_in is not None))
def test_a_run_counts_the_damage_that_it_went_on_past(kind: Kind, whole: Path) -> None:
    place = whole.with_name("place")
    said = damaged(kind, place, whole)
    assert said.error is None, said.error
    incidents = json.loads((place / str(kind.told_in) / "summary.json").read_bytes())["incidents"]
    assert [name for name in incidents if name.startswith("damaged ")], (incidents, said.text)
