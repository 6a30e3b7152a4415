"""A summary as a context shows it."""

from collections.abc import Iterator
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr
from zoneinfo import ZoneInfo

from lcm.clock import EPOCH
from lcm.records.summary import Summary


def summary_text(summary: Summary, zone: ZoneInfo, *, is_untrusted: bool = False) -> str:
    """Give the summary, the ids of the summaries that it was condensed from, and when its sources were said.

    What has no time, which the store dates at the epoch, is told none. `is_untrusted`: a model is told not to obey it.
    """
    return "\n".join(_lines(summary, zone, is_untrusted))


def _lines(summary: Summary, zone: ZoneInfo, is_untrusted: bool) -> Iterator[str]:
    attributes = {
        "id": summary.summary_id,
        "kind": summary.kind,
        "depth": str(summary.depth),
        "descendant_count": str(summary.descendant_count),
        "trust": "untrusted" if is_untrusted else None,
        "earliest_at": _local(summary.earliest_at, zone),
        "latest_at": _local(summary.latest_at, zone),
    }
    told = " ".join(f"{name}={_quoted(value)}" for name, value in attributes.items() if value is not None)
    yield f"<summary {told}>"
    if summary.kind == "condensed" and summary.source_ids:
        yield "  <parents>"
        for source_id in summary.source_ids:
            yield f"    <summary_ref id={_quoted(source_id)} />"
        yield "  </parents>"
    yield "  <content>"
    yield escape(summary.content)
    yield "  </content>"
    yield "</summary>"


def _quoted(value: str) -> str:
    return quoteattr(value, {'"': "&quot;"})


def _local(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None or instant == EPOCH else instant.astimezone(zone).strftime("%Y-%m-%dT%H:%M:%S")
