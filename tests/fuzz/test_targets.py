"""Every fuzzed reader takes its seeds, and what was once found; a fuzzer itself runs outside the tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lcm.errors import LcmError
from tests.fuzz.changes import changed
from tests.fuzz.targets import TARGETS, seeds

FOUND = sorted((Path(__file__).parent / "found").glob("*/*"))
"""Files that once made a reader fail, below the name of the target."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_seed_is_read(name: str, tmp_path: Path) -> None:
    given_to_it = list(seeds(name))
    assert given_to_it
    for seed in given_to_it:
        TARGETS[name](tmp_path, seed)


def test_what_was_once_found_is_read_or_refused(tmp_path: Path) -> None:
    wrong = [str(found) for found in FOUND if not is_read_or_refused(found.parent.name, tmp_path, found.read_bytes())]
    assert FOUND and not wrong


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "preset"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_changed_seed_is_read_or_refused(name: str, tmp_path: Path, data: st.DataObject) -> None:
    assert is_read_or_refused(name, tmp_path, data.draw(changed(list(seeds(name)))))


def is_read_or_refused(name: str, folder: Path, content: bytes) -> bool:
    """Whether a target takes bytes, or refuses them in one line; it raises what else it raises."""
    try:
        TARGETS[name](folder, content)
    except LcmError as error:
        return "\n" not in str(error)
    return True
