from collections.abc import Iterator

import pytest

from lcm.memory.memory import Memory
from lcm.store.store import Store
from tests.support.workspaces import system, transcript


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty one."""
    with Store() as opened:
        yield opened


@pytest.fixture
def memory() -> Iterator[Memory]:
    """It has heard a conversation of eight turns."""
    with Memory.open(system()) as opened:
        opened.ingest(transcript())
        yield opened
