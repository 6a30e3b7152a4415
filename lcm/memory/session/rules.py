"""What a session keeps of what it is told, and how it finds out what it has missed."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from lcm.checks import check_choice, check_range
from lcm.javascript import trim
from lcm.protocols.compaction import Summarizer
from lcm.records.rules import Rules
from lcm.transcript.openclaw import Branches

_STARS = re.compile(r"(\*\*|\*)")
_LINE_ENDS = "\\n\\r\\u2028\\u2029"
_LEAST_FIRST_IMPORT, _FIRST_IMPORT_SHARE = 6000, 0.3


@dataclass(frozen=True, slots=True)
class SessionRules:
    """The rules of one live session.

    Patterns are globs over the whole session key: `*` stands for any run without a colon, `**` for any run within a
    line, everything else for itself.

    Source: lossless-claw 0.6.3 (`rules` original):

    | | corrected | original |
    |---|---|---|
    | a message of the file is known by | its entry's id, even after a fork or a rewrite | its words and their number |
    | of a file's branches counts | the live one | all, in the order of the file |
    | large results of tools are | all | blocks of a tool's own message |

    Where a format has no ids words count by either.
    """

    ignore_patterns: Sequence[str] = ()
    """Sessions that are neither stored nor assembled; one without a key is known by its id."""
    stateless_patterns: Sequence[str] = ()
    """Sessions that are never written, and assembled from what is stored."""
    skip_stateless: bool = True
    """False: `stateless_patterns` have no effect."""
    new_session_retain_depth: int = 2
    """Of a context at a new session, summaries of at least that depth stay; -1: everything does."""
    bootstrap_max_tokens: int | None = None
    """The first import takes as much from the end of the file, and its last message anyway; 0: max(6000, 0.3 x
    `leaf_chunk_tokens`); None: all of it."""
    leaf_chunk_tokens: int = 20000
    """The tokens that compaction makes a leaf of, which the bound of the first import may follow."""
    large_file_threshold_tokens: int | None = None
    """A text of as many tokens is taken out of the context; None: none is."""
    large_file_summarizer: Summarizer | None = field(default=None)
    """Describes large texts that are neither data nor code; None: a rule does."""
    prune_heartbeats: bool = False
    """Hide acknowledged heartbeats at the bootstrap."""
    prune_heartbeat_turns: bool = False
    """Hide those that a turn acknowledges, in a live session and where one is replayed turn by turn."""
    rules: Rules = "corrected"
    import_cap_share: float | None = None
    """A reconciliation that would import more than this share of the stored messages imports nothing; None: no cap."""
    import_cap_messages: int = 50
    """As many may always be imported."""
    journal_max_entries: int = 500
    """Of what the host says of its sessions, the newest; 0: all. Source: libravdb memory 1.4.4."""
    live_alone: ClassVar[Collection[str]] = (
        "new_session_retain_depth",
        "bootstrap_max_tokens",
        "leaf_chunk_tokens",
        "prune_heartbeats",
        "import_cap_share",
        "import_cap_messages",
        "journal_max_entries",
    )
    """Settings that live sessions alone read, and nothing that is replayed."""
    unused_where: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "skip_stateless": {"stateless_patterns": []},
        "large_file_summarizer": {"large_file_threshold_tokens": None},
    }
    """Setting -> the values of others that leave it without effect."""

    def __post_init__(self) -> None:
        check_range(self, "bootstrap_max_tokens", ge=0, or_null=True)
        check_range(self, "large_file_threshold_tokens", ge=1, or_null=True)
        check_range(self, "leaf_chunk_tokens", ge=1)
        check_range(self, "new_session_retain_depth", ge=-1)
        check_range(self, "import_cap_share", ge=0, or_null=True)
        check_range(self, "journal_max_entries", "import_cap_messages", ge=0)
        check_choice(self, rules=Rules)

    @property
    def idle_because(self) -> str | None:
        """Why a replay asks it nothing; None = it does."""
        leaves_out = self.ignore_patterns or (self.skip_stateless and self.stateless_patterns)
        if leaves_out or self.large_file_threshold_tokens is not None or self.prune_heartbeat_turns:
            return None
        return "nothing in an evaluation asks it: it plays no live session, and here are no patterns nor large files"

    @property
    def first_import_tokens(self) -> int | None:
        """The bound of the first import; None: it has none."""
        if self.bootstrap_max_tokens == 0:
            return tokens_by_leaf_chunk(self.leaf_chunk_tokens)
        return self.bootstrap_max_tokens

    @property
    def branches(self) -> Branches:
        """How a file with abandoned branches is read."""
        return "apart" if self.rules == "corrected" else "in_file_order"

    def ignores(self, session_id: str, session_key: str = "") -> bool:
        candidate = trim(session_key) or session_id
        return any(matches(pattern, candidate) for pattern in self.ignore_patterns)

    def is_stateless(self, session_key: str) -> bool:
        candidate = trim(session_key)
        return (
            self.skip_stateless
            and bool(candidate)
            and any(matches(pattern, candidate) for pattern in self.stateless_patterns)
        )

    def writes(self, session_id: str, session_key: str = "") -> bool:
        """Say whether anything of the session is stored."""
        return not self.ignores(session_id, session_key) and not self.is_stateless(session_key)

    def may_import(self, missing: int, stored: int) -> bool:
        """Say whether a reconciliation may import as many messages."""
        return self.import_cap_share is None or missing <= max(self.import_cap_share * stored, self.import_cap_messages)


def tokens_by_leaf_chunk(leaf_chunk_tokens: float) -> int:
    """The bound of a first import that follows the size of a leaf: 0.3 of it, rounded down, at least 6000."""
    return max(_LEAST_FIRST_IMPORT, math.floor(_FIRST_IMPORT_SHARE * leaf_chunk_tokens))


def matches(pattern: str, session_key: str) -> bool:
    """Say whether a session key is one that the glob describes."""
    return _compiled(pattern).fullmatch(session_key) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    runs = {"**": f"[^{_LINE_ENDS}]*", "*": "[^:]*"}
    return re.compile("".join(runs.get(piece) or re.escape(piece) for piece in _STARS.split(pattern)))
