"""What every test may rely on: no network, no telemetry, no state left in the user's own folders."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("all", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", settings.get_profile("all"), max_examples=10)
settings.load_profile("all")

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ["LCM_TRUST"] = "tests"  # stand-ins for models
os.environ["LCM_ALLOWED_HOSTS"] = "127.0.0.1,localhost"  # servers of tests, and the keys that they are shown
os.environ["LCM_ALLOWED_KEYS"] = f"ANOTHER,ANOTHER_KEY,MODEL_KEY,RERANK_KEY,UNSET,{tempfile.gettempdir()}"
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT
