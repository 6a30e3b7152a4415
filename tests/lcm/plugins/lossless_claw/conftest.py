from collections.abc import Iterator

import pytest

from lcm.store.store import Store


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty one."""
    with Store() as opened:
        yield opened
