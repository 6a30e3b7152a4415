"""lcm external check PROGRAM ARGUMENT ... [external.KEY=VALUE] [ranking.KEY=VALUE]

See what a memory of others can do before an hour is spent on it. It is told a dozen messages and asked five questions;
a table says what it offers, what it says of itself, which settings it ignores, how many texts it gives, where what
answers stands among them, whether it compacts, whether it is empty for the next workspace, and how long calls took.

  lcm external check python3 docs/examples/external/bm25.py
  lcm external check node docs/examples/external/plugin_bridge.mjs add=agent_end 'external.environment=[LCM_PLUGIN_DIR]'
  lcm external check external=http external.url=http://127.0.0.1:8000/memory

What is not `external`, `external.KEY` or `ranking.KEY` is a word of the command. Exit code 2 where a call failed, or no
answer is of anything that was said: `lcm evaluate system=external` would have no numbers."""

from collections.abc import Sequence
from dataclasses import asdict

from eval.external.check import checked
from eval.external.ranking import External
from eval.table import Column
from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.arguments import RUNS_COMMAND, consented
from pipelines.config.overrides import group_of, quoted
from pipelines.evaluate import UNTOLD
from pipelines.views.output import output
from pipelines.views.progress import working
from pipelines.views.terminal import say, show_table, tell_json

_SETTINGS = ("external", "ranking")


def main(arguments: Sequence[str]) -> int:
    """`lcm external check PROGRAM ARGUMENT ... [KEY=VALUE ...]`."""
    if arguments[0] != "check":
        raise LcmError(f"`lcm external` is followed by check, got {arguments[0]!r}")
    settings = [one for one in arguments[1:] if "=" in one and group_of(one) in _SETTINGS]
    if words := [one for one in arguments[1:] if one not in settings]:
        settings.append(f"{RUNS_COMMAND}={quoted(words)}")
    with consented(settings) as overrides:
        memory: External = building.build(composition.composed(["system=external", *overrides]), "ranking")
        with working("asking the memory"):
            found = checked(memory.transport, memory.settings, memory.similarity)
    if output().is_json:
        tell_json(asdict(found))
    else:
        rows = ((one.what, one.told, one.took_ms) for one in found.lines)
        show_table(("call", "what came", Column("ms", "number", 0)), rows)
        for fault in found.faults:
            say(f"fault: {fault}")
    return UNTOLD if found.faults else 0
