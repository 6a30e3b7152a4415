"""Which part reads which key, on the terminal."""

import json
from collections.abc import Sequence
from typing import Any

from pipelines.config.contracts import Part, UnreadKey
from pipelines.views.terminal import say, show_table

_LONGEST = 60  # letters of a value


def show_readers(parts: Sequence[Part], unread: Sequence[UnreadKey]) -> None:
    """A row a key that is read, with its reader; a row a key that nothing reads, with the reason; how many of each."""
    say("each key and the part that reads it")
    show_table(("key", "value", "read by", "which stands at"), [row for part in parts for row in _rows(part)])
    read = sum(len(part.keys) for part in parts)
    if unread:
        say("keys that nothing reads: whatever they are set to, no number changes")
        show_table(("key", "value", "why"), [(one.key, _shown(one.value), one.reason) for one in unread])
    said = f"{len(unread)} are read by nothing" if unread else "there is no other"
    say(f"{read} keys are read by {len(parts)} parts; {said}")


def _rows(part: Part) -> list[tuple[str, str, str, str]]:
    where = "\n".join(part.taken_by)
    if not part.keys:
        return [(part.written, "no keys of its own", part.name, where)]
    return [(key, _shown(value), part.name, where) for key, value in part.keys.items()]


def _shown(value: Any) -> str:
    """As YAML has it, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
