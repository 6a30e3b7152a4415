"""lcm questions check FILE PATH ... | lcm questions make PATH ... into=FILE

Questions about recorded sessions, for `lcm evaluate PATH ... FILE`.

  lcm questions check   show each question with the text of its evidence, and what cannot be found
  lcm questions make    make questions from the sessions themselves, with no model

`lcm questions check --help` and `lcm questions make --help` tell more."""

from collections.abc import Sequence

from lcm.errors import LcmError


def main(arguments: Sequence[str]) -> int:
    """`lcm questions` with neither check nor make, which the command line tells apart."""
    raise LcmError(f"`lcm questions` is followed by check or make, got {arguments[0]!r}")
