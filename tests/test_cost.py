"""Which tests are slow is recorded by processor time, and what is recorded is there."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.cost import Bill, is_slow, slow_tests


def test_what_is_recorded_is_there(root: Any) -> None:
    texts = {}
    for line in slow_tests():
        path, _, name = line.partition("::")
        texts.setdefault(path, (root / path).read_text() if (root / path).is_file() else "")
        assert f"def {name.partition('[')[0].rpartition('::')[2]}" in texts[path] if name else texts[path], line


def test_a_test_is_slow_by_itself_or_where_what_its_file_shares_is() -> None:
    bill = Bill()
    for nodeid, when, seconds in (
        ("a.py::one", "setup", 0.1),
        ("a.py::one", "call", 0.3),
        ("a.py::two[x@y]", "setup", 0.4),
        ("a.py::two[x@y]", "call", 0.2),
        ("b.py::one@group", "setup", 1.1),
        ("b.py::two@group", "call", 1.2),
        ("c.py::one", "call", 0.2),
    ):
        bill.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, when=when, processor_s=seconds))  # type: ignore[arg-type]
    kept = {"d.py", "d.py::one"}
    slow = bill.recorded({"a.py::one", "a.py::gone", "c.py", "c.py::one", *kept})
    assert slow == {"a.py::two[x@y]", "b.py", *kept}
    assert [is_slow(nodeid, slow) for nodeid in ("a.py::one", "a.py::two[x@y]", "b.py::other")] == [False, True, True]


@pytest.mark.xdist_group("one worker")
def test_a_group_of_tests_stays_in_one_worker(request: pytest.FixtureRequest) -> None:
    """Else each worker makes for itself what the tests of a group share."""
    is_shared_out = "PYTEST_XDIST_WORKER" in os.environ
    assert request.node.nodeid.endswith("@one worker") == is_shared_out
