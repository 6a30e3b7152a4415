"""What every test may rely on: no network, no telemetry, no state left in the user's own folders."""

import gc
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = tuple(f"tests.support.{name}" for name in ("cost", "looked_at", "models", "ray_of_two"))

settings.register_profile("all", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("all"), max_examples=10)
settings.load_profile("all")

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
for variable in ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_NAME"):
    os.environ.pop(variable, None)  # which name where a user's own runs go
os.environ["LCM_TRUST"] = "tests"  # stand-ins for models
os.environ["LCM_ALLOWED_HOSTS"] = "127.0.0.1,localhost"  # servers of tests, and the keys that they are shown
os.environ["LCM_ALLOWED_KEYS"] = f"ANOTHER,ANOTHER_KEY,MODEL_KEY,RERANK_KEY,UNSET,{tempfile.gettempdir()}"
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

gc.set_threshold(20_000, 20, 20)
"""What is collected and imported, some millions of objects, is looked through a few times instead of hundreds."""

ROOT = Path(__file__).parent.parent


class _FailuresAtOnce:
    """Names each failure when it happens: a suite of an hour may be stopped before its summary."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", report.longrepr)
            reason = getattr(crash, "message", str(crash)).partition("\n")[0]
            self._reporter.write_line(f"\nfailed in {report.when}: {report.nodeid}: {reason[:300]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and (reporter := config.pluginmanager.get_plugin("terminalreporter")):
        config.pluginmanager.register(_FailuresAtOnce(reporter))


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def no_full_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each round of a benchmark all that a worker of the tests holds would be looked through, for a second."""
    monkeypatch.setattr(gc, "collect", lambda: 0)
