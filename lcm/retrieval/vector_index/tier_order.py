"""Which row belongs to which document, for rows that are kept beside an exact index, in its order."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
"""Row numbers, from 0."""


class RowOrder:
    """Rows by the order of adding their ids, then of adding themselves: as `ExactIndex.contents` gives them."""

    def __init__(self, ids: Sequence[str] = ()) -> None:
        """Args: ids: the id of every row, in that order."""
        self._serials: dict[str, int] = {}
        self._names: list[str] = []  # by serial
        self._owners = np.empty(0, np.int64)  # row -> serial
        self._new: list[int] = []  # serials of rows not in _owners yet
        self._removed: set[int] = set()
        self.add(ids)
        self.flush()

    @property
    def ids(self) -> int:
        return len(self._serials)

    @property
    def count(self) -> int:
        """Rows, once settled."""
        return len(self._owners)

    @property
    def has_one_row_an_id(self) -> bool:
        return len(self._owners) == len(self._serials)

    def add(self, ids: Sequence[str]) -> None:
        for document_id in ids:
            serial = self._serials.get(document_id)
            if serial is None:
                serial = self._serials[document_id] = len(self._names)
                self._names.append(document_id)
            self._new.append(serial)

    def remove(self, ids: Sequence[str]) -> None:
        for document_id in dict.fromkeys(ids):
            self._removed.add(self._serials.pop(document_id))

    def flush(self) -> Rows | None:
        """Take in what changed, once for many changes.

        Returns:
            The rows that stay, new ones counted on from the last, in their new order; None if all stay where they are.
        """
        if not self._new and not self._removed:
            return None
        self._owners = np.concatenate([self._owners, np.array(self._new, np.int64)])
        is_sorted = bool(np.all(np.diff(self._owners) >= 0)) if self._new else True
        self._new = []
        order = None
        if self._removed or not is_sorted:
            is_kept = np.ones(len(self._names), bool)
            is_kept[list(self._removed)] = False
            order = np.flatnonzero(is_kept[self._owners])
            order = order[np.argsort(self._owners[order], kind="stable")]
            self._owners = (np.cumsum(is_kept) - 1)[self._owners[order]]
            self._names = [name for name, keep in zip(self._names, is_kept, strict=True) if keep]
            self._serials = {name: serial for serial, name in enumerate(self._names)}
            self._removed = set()
        return order

    def rows_of(self, ids: Sequence[str]) -> tuple[Rows, int]:
        """The rows of those of these ids that are known, ascending, and how many ids those are; settled."""
        is_asked = np.zeros(len(self._names), bool)
        is_asked[[self._serials[i] for i in ids if i in self._serials]] = True
        return np.flatnonzero(is_asked[self._owners]), int(is_asked.sum())

    def owners_of(self, rows: Rows) -> tuple[list[str], Rows]:
        """The ids of these rows, each once, and the place in `rows` of the first row of each; settled."""
        owners = self._owners[rows]
        firsts = np.sort(np.unique(owners, return_index=True)[1])
        return [self._names[owner] for owner in owners[firsts].tolist()], firsts
