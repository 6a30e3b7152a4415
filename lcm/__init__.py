"""lcm, which is installed as lcm-harness: the memory of an agent, and what reads recorded transcripts.

What stands in `DOOR` can be imported from here, and is loaded when it is asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lcm.errors import LcmError as LcmError
    from lcm.memory.memory import Memory as Memory
    from lcm.memory.system import System as System
    from lcm.records.conversation import Message as Message
    from lcm.records.conversation import Transcript as Transcript
    from lcm.records.query import Query as Query
    from lcm.transcript.reading import read_transcripts as read_transcripts

__version__ = "0.1.0"
DOOR = {
    "LcmError": "lcm.errors",
    "Memory": "lcm.memory.memory",
    "Message": "lcm.records.conversation",
    "Query": "lcm.records.query",
    "System": "lcm.memory.system",
    "Transcript": "lcm.records.conversation",
    "read_transcripts": "lcm.transcript.reading",
}
"""Name -> the module that it comes from."""


def __getattr__(name: str) -> object:
    if name not in DOOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *DOOR])
