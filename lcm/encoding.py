"""Values as the text that SQLite keeps, and back.

SQLite text is UTF-8, which cannot carry half of a surrogate pair (programs that cut text by UTF-16 units leave
such halves). Text columns hold U+FFFD in its place, so that every reader and full-text index can work with
them; JSON columns escape it, so what must be exact (`envelope`, a part's `metadata`) is exact. NUL survives in
both.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lcm.clock import format_instant
from lcm.errors import StoreError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What a terminal obeys, and does not show; tabs and line breaks aside."""
_AS_IT_IS, _ESCAPED = (json.JSONEncoder(ensure_ascii=escapes, separators=(",", ":")) for escapes in (False, True))
"""Made once: `json.dumps` makes one a call, which takes as long as a small value does."""
INSTANT_FORMAT = "%Y-%m-%dT%H:%M:%S%.3fZ"
"""The text form of instants, in the notation of Polars."""


def well_formed(text: str) -> str:
    """Join surrogate pairs into the character that they spell; each half alone becomes U+FFFD."""
    if is_well_formed(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_well_formed(text: str) -> bool:
    """Say whether the text is free of surrogates, so that UTF-8 can carry it."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(text: str) -> str:
    """Text that a terminal shows as it is, whoever wrote it: what it would obey instead becomes U+FFFD."""
    return _CONTROL.sub("\ufffd", well_formed(text).replace("\r\n", "\n"))


def to_json(value: object) -> str:
    """Compact JSON text in the order of the keys; surrogates are escaped, everything else is as it is."""
    text = _AS_IT_IS.encode(value)
    return text if is_well_formed(text) else _ESCAPED.encode(value)


def from_yaml(text: str) -> Any:
    """What a text of YAML holds, by the safe loader: in C where there is one, which takes a tenth of the time."""
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - either is a safe one


def mapping_json(value: Mapping[str, Any]) -> str:
    return to_json(dict(value)) if value else "{}"


def optional_text(text: str | None) -> str | None:
    return None if text is None else well_formed(text)


def optional_instant(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def require_id(value: str, name: str) -> str:
    """Give the id back.

    Raises:
        StoreError: if UTF-8 cannot carry it; replacing a character could make two ids one.
    """
    if not is_well_formed(value):
        raise StoreError(f"{name} {value!r} holds half of a surrogate pair; give it an id of whole characters")
    return value
