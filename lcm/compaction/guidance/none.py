"""No guidance: compaction folds whatever was said."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lcm.records.conversation import Message
from lcm.records.summary import GuidanceShard


@dataclass(frozen=True, slots=True)
class NoGuidance:
    """No message is protected."""

    is_off = True

    def shards(
        self, messages: Sequence[Message], conversation_id: str, now: datetime, *, incidents: Counter[str]
    ) -> list[GuidanceShard | None]:
        return [None] * len(messages)
