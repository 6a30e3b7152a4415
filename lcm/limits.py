"""Limits: how much of what others wrote is worked on before it is refused. Each can be raised in the environment."""

import os
from dataclasses import dataclass

from lcm.errors import LimitError


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of something is taken in, unless an environment variable names another amount."""

    variable: str
    default: int
    unit: str

    @property
    def value(self) -> int:
        """How much.

        Raises:
            LimitError: if the variable names no whole number >= 1.
        """
        named = os.environ.get(self.variable) or str(self.default)
        if not named.isdecimal() or not int(named):
            raise LimitError(f"{self.variable} must be a whole number >= 1, got {named!r}")
        return int(named)

    def check(self, what: str, amount: int) -> None:
        """Refuse more than is allowed.

        Raises:
            LimitError: "the query has 200,000 characters: the limit is 100,000, and ... raises it".
        """
        if amount > self.value:
            raise LimitError(f"{what} has {amount:,} {self.unit}: {self.remedy}")

    @property
    def remedy(self) -> str:
        return f"the limit is {self.value:,}, and the environment variable {self.variable} raises it"


UNPACKED_RATIO = Limit("LCM_MAX_UNPACKED_RATIO", 200, "bytes for each of its own")
"""How many bytes each byte of a packed file may become, beyond what any file may: text becomes some ten."""
WHOLE_FILE_BYTES = Limit("LCM_MAX_WHOLE_FILE_BYTES", 2**28, "bytes")
"""Of a file that is read at once: questions, judgements, a plugin's settings, a dataset that is one JSON value."""
QUERY_CHARACTERS = Limit("LCM_MAX_QUERY_CHARACTERS", 100_000, "characters")
"""Of one query that a memory answers."""
PATTERN_STEPS = Limit("LCM_MAX_PATTERN_STEPS", 10_000, "steps with its repetitions written out")
"""Of a regular expression, whose counted repetitions are written out when it is compiled."""
PATTERN_TEXT_CHARACTERS = Limit("LCM_MAX_PATTERN_TEXT_CHARACTERS", 2**20, "characters")
"""Of one text that a regular expression is tried on, which takes some hundred bytes for each; the rest is not
searched."""

ALL = (UNPACKED_RATIO, WHOLE_FILE_BYTES, QUERY_CHARACTERS, PATTERN_STEPS, PATTERN_TEXT_CHARACTERS)
