"""What a recorded message says of itself beside its words."""

from collections.abc import Mapping
from typing import Any

from lcm.records.conversation import Message


def recorded(message: Message, key: str, otherwise: Any = None) -> Any:
    """What the record of a message holds under a key: itself, else in its `metadata`; else what stands in the envelope
    without a record, as a host gives it, or in `metadata` there."""
    for record in (message.envelope.get("native"), message.envelope):
        if isinstance(record, Mapping):
            for place in (record, record.get("metadata")):
                if isinstance(place, Mapping) and key in place:
                    return place[key]
    return otherwise


def recorded_bundle(message: Message) -> str:
    """The bundle of messages that the record names; empty where it names none."""
    named = recorded(message, "continuity_bundle_id")
    return named if isinstance(named, str) else ""
