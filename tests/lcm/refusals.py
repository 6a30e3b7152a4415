"""Settings that a component refuses."""

import re
from collections.abc import Callable

import pytest


def assert_refused(build: Callable[..., object], rule: str, **settings: object) -> None:
    """Each setting by itself is refused as one that "must ..., got ..."; a list holds several values of one setting."""
    for name, values in settings.items():
        for value in values if isinstance(values, list) else [values]:
            with pytest.raises(ValueError, match=f"^{re.escape(f'{name} must {rule}, got {value!r}')}"):
                build(**{name: value})
