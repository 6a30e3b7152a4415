"""Limits are told with what, how much and the remedy."""

import pytest

from lcm.errors import LimitError
from lcm.limits import Limit


def test_a_limit_tells_what_how_much_and_how_to_raise_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = Limit("LCM_MAX_GOATS", 3, "goats")
    limit.check("the farm", 3)
    with pytest.raises(LimitError, match=r"^the farm has 1,000 goats: the limit is 3, and the environment variable "):
        limit.check("the farm", 1000)
    monkeypatch.setenv("LCM_MAX_GOATS", "1000")
    limit.check("the farm", 1000)
    for wrong in ("0", "-1", "1e3", "many", "1.5"):
        monkeypatch.setenv("LCM_MAX_GOATS", wrong)
        with pytest.raises(LimitError, match=r"LCM_MAX_GOATS must be a whole number >= 1, got '"):
            limit.check("the farm", 1)
