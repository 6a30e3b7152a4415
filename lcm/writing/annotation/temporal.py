"""How long a statement holds: its temporal type, and when it expires.

Source: memory-lancedb-pro, temporal-classifier. Its static cues (favourite, born, lives in) never change an outcome,
for a dynamic cue beside them wins and static is what everything else is: they are left out.
"""

import re
from datetime import datetime, timedelta
from typing import Literal


def _cue(english: str, chinese: str) -> re.Pattern[str]:
    """English cues stand as words of ASCII letters, Chinese ones anywhere."""
    return re.compile(rf"\b(?:{english})\b|{chinese}", re.ASCII | re.IGNORECASE)


_DYNAMIC = _cue(
    "today|yesterday|tomorrow|recently|currently|right now|this week|this month|last week|next week|this morning"
    "|tonight|later",
    "今天|昨天|明天|最近|正在|刚才|刚刚|这周|这个月|上周|下周|目前|现在|今晚|今早|稍后|待会",
)

_LIFETIMES = (
    (re.compile("day after tomorrow|后天", re.IGNORECASE), timedelta(hours=48)),
    (_cue("tomorrow", "明天"), timedelta(hours=24)),
    (_cue("next week", "下周"), timedelta(days=7)),
    (_cue("this week", "这周"), timedelta(days=3)),
    (_cue("next month", "下个月"), timedelta(days=30)),
    (_cue("this month", "这个月"), timedelta(days=15)),
    (_cue("tonight", "今晚"), timedelta(hours=12)),
    (_cue("today", "今天"), timedelta(hours=18)),
)
"""The first whose cue is there counts. The day after tomorrow may stand anywhere, even glued to other letters."""


def temporal_type(text: str) -> Literal["static", "dynamic"]:
    """Dynamic where a cue says that the statement is about a passing moment, else static."""
    return "dynamic" if _DYNAMIC.search(text) else "static"


def expiry(text: str, said_at: datetime) -> datetime | None:
    """When what a text says is over, judged by its cues alone; None = never.

    "Next month" sets an expiry although it does not make a text dynamic.
    """
    lifetime = next((lifetime for cue, lifetime in _LIFETIMES if cue.search(text)), None)
    if lifetime is None or said_at > datetime.max.replace(tzinfo=said_at.tzinfo) - lifetime:
        return None
    return said_at + lifetime
