"""What the tests cost: processor time of each and all, the memory of the largest worker, and which tests are slow.

A test is slow if it took over half a second of processor time when the suite was last recorded (`make slow-tests`
writes `tests/slow.txt`); `make test` leaves slow tests out. Processor time is user and system time of the worker and of
the processes that it started and waited for, so other work on the machine hardly moves it.
"""

import ctypes
import gc
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIMIT_S = 0.5
RECORDED = Path(__file__).parent.parent / "slow.txt"
SLOWEST = 20


def slow_tests() -> set[str]:
    """Return the ids of slow tests; one that is a file stands for all its tests, which share a dear fixture."""
    return set(RECORDED.read_text().splitlines())


def is_slow(nodeid: str, slow: set[str]) -> bool:
    """Whether a test is one of them, or of a file that is."""
    return nodeid in slow or nodeid.partition("::")[0] in slow


def processor_s() -> float:
    """Return the processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def resident_mb() -> float:
    """Return the memory that this process holds now, where the system tells (Linux)."""
    held = Path("/proc/self/statm")
    return int(held.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if held.exists() else 0.0


def give_back_memory() -> None:
    """Give back what was freed, which glibc keeps: some 300 MB behind a large dataset."""
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)


@pytest.fixture(scope="module", autouse=True)
def freed_memory_is_given_back() -> Iterator[None]:
    yield
    give_back_memory()


class Meter:
    """Adds to each report the processor time since the report before it, in the process that runs the tests."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._before = processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        report = yield
        now = processor_s()
        report.processor_s, self._before = now - self._before, now
        return report

    def pytest_sessionfinish(self) -> None:
        if hasattr(self._config, "workeroutput"):
            gc.collect()
            give_back_memory()
            self._config.workeroutput["used"] = (processor_s(), resident_mb())


class Bill:
    """Sums what the reports tell, and prints it at the end: for each folder, for the slowest tests, for all."""

    def __init__(self, largest_mb: int | None = None) -> None:
        self._largest_mb = largest_mb
        self.seconds: Counter[str] = Counter()
        self.shared: set[str] = set()
        """Files with a test that waited long for what is set up."""
        self.workers: list[tuple[float, float]] = []
        self._started = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        nodeid = re.sub(r"@[^]]*$", "", report.nodeid)  # its group, of several processes
        spent = getattr(report, "processor_s", 0.0)
        self.seconds[nodeid] += spent
        if report.when == "setup" and spent > LIMIT_S:
            self.shared.add(nodeid.partition("::")[0])

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        if used := getattr(node, "workeroutput", {}).get("used"):
            self.workers.append(used)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._is_over() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _is_over(self) -> bool:
        return self._largest_mb is not None and any(held > self._largest_mb for _, held in self.workers)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        if len(self.seconds) <= SLOWEST:
            return
        say = terminalreporter.write_line
        terminalreporter.section("processor time")
        parts: Counter[str] = Counter()
        tests: Counter[str] = Counter()
        for nodeid, seconds in self.seconds.items():
            part = "/".join(nodeid.partition("::")[0].split("/")[:2])
            parts[part] += seconds
            tests[part] += 1
        for part, seconds in parts.most_common():
            say(f"{seconds:8.1f} s {tests[part]:6,} tests  {part}")
        say(f"The {SLOWEST} slowest:")
        for nodeid, seconds in self.seconds.most_common(SLOWEST):
            say(f"{seconds:8.1f} s  {nodeid[:200]}")
        own = processor_s() if not self.workers else sum(spent for spent, _ in self.workers)
        held = max((held for _, held in self.workers), default=resident_mb())
        over = f", more than the {self._largest_mb:,} MB allowed" if self._is_over() else ""
        passed = time.monotonic() - self._started
        say(f"{len(self.seconds):,} tests: {own:,.0f} s of processor time in {passed:,.0f} s")
        say(f"The largest worker holds {held:,.0f} MB at its end{over}")

    def recorded(self, before: set[str]) -> set[str]:
        """Return the new lines of `tests/slow.txt`; a file of which nothing ran keeps those it had."""
        files = {nodeid.partition("::")[0] for nodeid in self.seconds}
        kept = {line for line in before if line.partition("::")[0] not in files}
        slow = {nodeid for nodeid, seconds in self.seconds.items() if seconds > LIMIT_S}
        return kept | self.shared | {nodeid for nodeid in slow if nodeid.partition("::")[0] not in self.shared}


class Recorder:
    """Writes `tests/slow.txt` at the end."""

    def __init__(self, bill: Bill) -> None:
        self._bill = bill

    def pytest_sessionfinish(self) -> None:
        RECORDED.write_text("".join(f"{line}\n" for line in sorted(self._bill.recorded(slow_tests()))))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is recorded as slow."""
    slow = slow_tests()
    for item in items:
        if is_slow(item.nodeid, slow):
            item.add_marker(pytest.mark.slow)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--largest-worker-mb", type=int, help="fail if a worker holds more when it ends")
    parser.addoption("--record-slow", action="store_true", help="write what took over half a second to tests/slow.txt")


def pytest_configure(config: pytest.Config) -> None:
    is_worker = hasattr(config, "workerinput")
    config.pluginmanager.register(Meter(config))
    if not is_worker:
        bill = Bill(config.getoption("--largest-worker-mb"))
        config.pluginmanager.register(bill)
        if config.getoption("--record-slow"):
            config.pluginmanager.register(Recorder(bill))
