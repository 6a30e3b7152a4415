"""No external memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.external.session import Connection
from lcm.errors import LcmError
from lcm.protocols.contract import Contract


@dataclass(frozen=True, slots=True)
class NoExternal:
    """Nothing is reached."""

    contract = Contract(is_off=True)

    @property
    def modules(self) -> Sequence[str]:
        return ()

    def open(self) -> Connection:
        raise LcmError(
            "external=none reaches no memory: choose external=stdio, object, http or mcp, as in docs/external.md"
        )
