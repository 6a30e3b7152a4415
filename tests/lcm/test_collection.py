import gc

import pytest

from lcm.collection import collection_paused


def test_collection_is_paused_within_and_as_it_was_afterwards() -> None:
    assert gc.isenabled()
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()
