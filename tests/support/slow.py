"""Slow tests: which took over half a second when they were last recorded, so that `make test` leaves them out.

`make slow-tests` records them anew, in `tests/slow.txt`. What a run leaves out keeps the line it had.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

LIMIT_S = 0.5
RECORDED = Path(__file__).parent.parent / "slow.txt"


def slow_tests() -> set[str]:
    """Their ids; one that is a file stands for all of its tests, which share what takes long to set up."""
    return set(RECORDED.read_text().splitlines())


def is_slow(nodeid: str, slow: set[str]) -> bool:
    """Whether a test is one of them, or of a file that is."""
    return nodeid in slow or nodeid.partition("::")[0] in slow


class Recorder:
    """What each test took: itself, and what was set up for it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.shared: set[str] = set()
        """Files with a test that waited long for what is set up."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid = re.sub(r"@[^]]*$", "", report.nodeid)  # its group, of several processes
        self.seconds[nodeid] += report.duration
        if report.when == "setup" and report.duration > LIMIT_S:
            self.shared.add(nodeid.partition("::")[0])

    def pytest_sessionfinish(self) -> None:
        RECORDED.write_text("".join(f"{line}\n" for line in sorted(self.recorded(slow_tests()))))

    def recorded(self, before: set[str]) -> set[str]:
        """The new lines, where those before are known."""
        files = {nodeid.partition("::")[0] for nodeid in self.seconds}
        kept = {line for line in before if line not in self.seconds and line not in files}
        slow = {nodeid for nodeid, seconds in self.seconds.items() if seconds > LIMIT_S}
        return kept | self.shared | {nodeid for nodeid in slow if nodeid.partition("::")[0] not in self.shared}


def pytest_configure(config: pytest.Config) -> None:
    """As a plugin: `-p tests.support.slow`."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
