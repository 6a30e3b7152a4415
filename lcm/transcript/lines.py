"""Files as text and JSON, with the line at fault in every error."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lcm.errors import TranscriptError

_GZIP_MAGIC = b"\x1f\x8b"


def read_text(path: Path) -> str:
    """Read UTF-8, unpacked where it is gzip by content.

    Raises:
        TranscriptError: if the file cannot be opened, unpacked or decoded.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as err:
        raise TranscriptError(f"{path}: cannot be read: {err}") from err
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        line = data.count(b"\n", 0, err.start) + 1
        raise TranscriptError(f"{path}:{line}: not UTF-8 text: {err.reason}") from err


def json_document(path: Path, text: str, line: int = 1) -> Any:
    """Parse text that starts at a line of the file as one JSON value.

    Raises:
        TranscriptError: naming file and line, if it is not JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError as err:
        raise TranscriptError(f"{path}:{line + err.lineno - 1}: not JSON: {err.msg}") from err
    except (RecursionError, ValueError) as err:  # nested too deep, or a number of thousands of digits
        raise TranscriptError(f"{path}:{line}: JSON beyond what can be read: {err}") from err


def json_lines(path: Path, text: str) -> Iterator[tuple[int, Any]]:
    """Parse each line that is not blank; lines count from 1.

    Raises:
        TranscriptError: naming file and line, if a line is not JSON.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, json_document(path, line, number)


def first_value(path: Path, text: str) -> tuple[Any, bool]:
    """Parse the first line that is not blank, or the whole text where its JSON runs over several lines.

    Returns:
        The value, and whether it is the whole text's. The value is None for text that does not begin as JSON.

    Raises:
        TranscriptError: if it begins as JSON but is not.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None, False
    line = next(line for line in text.split("\n") if line.strip())
    try:
        return json.loads(line), False
    except (RecursionError, ValueError):
        return json_document(path, text), True


def stem(path: Path) -> str:
    """Give the file's name without its ending, that of gzip apart."""
    return Path(path.name.removesuffix(".gz")).stem
