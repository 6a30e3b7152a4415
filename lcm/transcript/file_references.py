"""The lines that stand in a context for a text too large for it, and the file ids in any text.

Source: lossless-claw 0.6.3.
"""

import re

from lcm.javascript import trim
from lcm.records.conversation import LargeFile

TOOL_RESULT_NAME = "tool-result"
"""Of a result whose tool is not named."""
UNKNOWN = "unknown"
"""Stands for what a file or a tool is not told."""

_FILE_ID = re.compile(r"\bfile_[a-f0-9]{16}\b", re.ASCII | re.IGNORECASE)


def file_ids_in(text: str) -> list[str]:
    """Find the file ids that a text names: lower-cased, each once, in order."""
    return list(dict.fromkeys(found.lower() for found in _FILE_ID.findall(text)))


def file_reference(file: LargeFile) -> str:
    """What stands for a `<file>` block."""
    name, mime_type = trim(file.name or "") or UNKNOWN, trim(file.mime_type or "") or UNKNOWN
    head = f"[LCM File: {file.file_id} | {name} | {mime_type} | {file.byte_size:,} bytes]"
    return f"{head}\n\n{_explored(file)}"


def tool_output_reference(file: LargeFile, tool_name: str) -> str:
    """What stands for the result of a tool."""
    whole = "Use lcm_describe with the file id to inspect the full output."
    return f"{_tool_output(file, tool_name)}\n\n{_explored(file)}\n\n{whole}"


def shortened_result(file: LargeFile, tool_name: str) -> str:
    """What stands for the result of a tool that is shown whole elsewhere."""
    whole = 'Call lcm_describe(id="<file_id above>", expandFile=true) to fetch the full output content from disk.'
    return f"{_tool_output(file, tool_name)}\n\n{_explored(file)}\n\n{whole}"


def _tool_output(file: LargeFile, tool_name: str) -> str:
    return f"[LCM Tool Output: {file.file_id} | tool={trim(tool_name) or UNKNOWN} | {file.byte_size:,} bytes]"


def _explored(file: LargeFile) -> str:
    return f"Exploration Summary:\n{trim(file.exploration_summary) or '(no summary available)'}"
