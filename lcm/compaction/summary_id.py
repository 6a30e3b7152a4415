"""The ids of summaries: digests of their words and instants."""

import hashlib
from datetime import datetime, timedelta

from lcm.clock import EPOCH
from lcm.encoding import well_formed

_MILLISECOND = timedelta(milliseconds=1)


def summary_id(content: str, created_at: datetime, number: int = 0) -> str:
    """`sum_` and 16 hex digits of the sha256 of the words and the milliseconds since 1970.

    Args:
        content: the summary's words.
        created_at: when it was made; of a replay, when it would have been.
        number: tells summaries of the same words and millisecond apart: 0 for the first.

    Source: lossless-claw 0.6.3, where the second of two such summaries cannot be stored.
    """
    seed = f"{well_formed(content)}{(created_at - EPOCH) // _MILLISECOND}{f'#{number}' if number else ''}"
    return f"sum_{hashlib.sha256(seed.encode()).hexdigest()[:16]}"
