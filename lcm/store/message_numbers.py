"""The numbers of messages in a store, as `lcm grep` tells them, without opening the store for writing."""

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from lcm.errors import StoreError


def message_ids_by_number(store: Path, numbers: Collection[int]) -> dict[int, str]:
    """The ids of messages by their numbers; a number that no message has is missing.

    Raises:
        StoreError: if the file is not there or no store; nothing is written.
    """
    if not store.is_file():
        raise StoreError(f"there is no store {str(store)!r}; `lcm ingest ... into={store}` makes one")
    sought = "SELECT message_key FROM messages WHERE message_id = ?"
    try:
        with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("SELECT count(*) FROM schema_migrations")
            rows = {number: connection.execute(sought, (number,)).fetchone() for number in numbers}
    except (sqlite3.Error, OverflowError) as error:
        raise StoreError(f"{str(store)!r} is no store of lcm: {error}") from error
    return {number: str(row[0]) for number, row in rows.items() if row is not None}
