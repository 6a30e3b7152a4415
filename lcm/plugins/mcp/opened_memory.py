"""The memory of a store that others may be writing to."""

from pathlib import Path

from lcm.memory.memory import Memory
from lcm.memory.system import System
from lcm.store.store import Store


class OpenedMemory:
    """Opened when it is first asked for, and kept in step with the store.

    Where nothing may be written it is a copy in this process alone, made again once the store has changed: the
    documents that the store lacks are made in the copy, and what counts as used is forgotten with it.
    """

    def __init__(self, system: System, path: Path, store: Store, *, may_write: bool) -> None:
        """
        Args:
            store: the same file, open: it tells when others have written.
        """
        self._system, self._path, self._store, self._may_write = system, path, store, may_write
        self._memory: Memory | None = None
        self._version = 0

    def current(self) -> Memory:
        """The memory, with all that the store holds now."""
        version = self._store.written_elsewhere()
        if self._memory is not None and self._may_write:
            self._memory.catch_up()
            self._memory.live.follow()
        elif self._memory is None or version != self._version:
            self.close()
            opened = Memory.open if self._may_write else Memory.open_copy
            self._memory, self._version = opened(self._system, self._path), version
        return self._memory

    def close(self) -> None:
        """Close what is open; where something may be written, the vectors are kept beside the store."""
        memory, self._memory = self._memory, None
        if memory is not None:
            memory.close()
