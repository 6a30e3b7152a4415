"""Logs in which turns are undone: which writing of a message counts, and which messages were left."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from lcm.transcript.branches import Stretches
from lcm.transcript.identity import digest


class Writing(NamedTuple):
    """One place in a log where a message stands."""

    place: int
    """How many writings stand before it."""
    message_id: str
    """Empty where the message has none."""

    @property
    def key(self) -> int:
        """What stands for the message; one without an id is written once."""
        return digest(self.message_id or f"at {self.place}")


class UndoableLog:
    """A log that writes a message anew when it changed, lists what the talk consists of, and goes back in it.

    Only digests are held of a message: of its id, and of what a list says of it.
    """

    def __init__(self) -> None:
        """Begin with nothing said."""
        self._live: dict[int, int] = {}
        """What the talk consists of, in order: the key of each message, and the place of the writing that counts."""
        self._summed_up: dict[int, int] = {}
        """What a list left out without undoing it."""
        self._undone: dict[int, tuple[int, int]] = {}
        """The number of the undoing, from 1, and the place."""
        self._undoings = 0
        self._listed: dict[int, int] = {}
        """What the writing that counts says of a message which stands in lists alone."""

    def write(self, writing: Writing) -> None:
        """A message is written by itself: this writing counts from now on."""
        self._listed.pop(writing.key, None)
        self._known(writing.key)
        self._live[writing.key] = writing.place

    def state(self, writings: Sequence[tuple[Writing, str]]) -> None:
        """A list says what the talk consists of.

        The beginning of what was said undoes the rest; any other list sums up what it leaves out.

        Args:
            writings: of each message, and what it says there.
        """
        told, before = [writing.key for writing, _ in writings], list(self._live)
        if told and told == before[: len(told)]:
            self._undo(before[len(told) :])
        live = {writing.key: self._place(writing, digest(says)) for writing, says in writings}
        self._summed_up |= {key: place for key, place in self._live.items() if key not in live}
        self._live = live

    def go_back(self, message_id: str) -> None:
        """Undo the message and all behind it; everything, where it is not part of the talk."""
        keys, key = list(self._live), digest(message_id)
        self._undo(keys[keys.index(key) :] if key in self._live else keys)

    def counts(self, writing: Writing) -> bool:
        """Whether this writing of the message is the one that counts."""
        key = writing.key
        undone = self._undone.get(key)
        return writing.place == (undone[1] if undone else self._live.get(key, self._summed_up.get(key)))

    def branches(self) -> Stretches:
        """The places of what was undone: each undoing left a branch."""
        if not self._undone:
            return Stretches(())
        places = [(place, 0) for places in (self._live, self._summed_up) for place in places.values()]
        places += [(place, number) for number, place in self._undone.values()]
        branches: dict[int, list[range]] = {}
        for number, run in groupby(sorted(places), key=lambda one: one[1]):
            found = [place for place, _ in run]
            branches.setdefault(number, []).append(range(found[0], found[-1] + 1))
        branches.pop(0, None)
        return Stretches(branches.values())

    def _place(self, writing: Writing, says: int) -> int:
        """Where a listed message counts: where it stood before, unless lists alone tell it and this one otherwise."""
        known = self._known(writing.key)
        if known is not None and self._listed.get(writing.key, says) == says:
            return known
        self._listed[writing.key] = says
        return writing.place

    def _known(self, key: int) -> int | None:
        """Where a message counts so far; it is a part of the talk again if it was none."""
        undone = self._undone.pop(key, None)
        return undone[1] if undone else self._summed_up.pop(key, self._live.get(key))

    def _undo(self, keys: Sequence[int]) -> None:
        self._undoings += 1
        self._undone |= {key: (self._undoings, self._live.pop(key)) for key in keys}
