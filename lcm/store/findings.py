"""What a check of the doctor finds, as sentences."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources


def told(connection: sqlite3.Connection, conversation: int | None, check: str) -> Iterator[str]:
    """The sentences that the query of `checks.sql` named so makes; conversation: its key, None for all."""
    for (finding,) in connection.execute(_queries()[check], (conversation,)):
        yield str(finding)


@cache
def _queries() -> Mapping[str, str]:
    text = resources.files("lcm.store").joinpath("checks.sql").read_text("utf-8")
    _, *parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))
