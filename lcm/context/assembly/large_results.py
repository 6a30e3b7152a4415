"""Results of tools too large for a context: whole where they are fresh, named by a reference before that.

Source: the stubs of lossless-claw 0.15.3.
"""

from collections.abc import Mapping
from typing import Literal

from lcm.context.assembly.runtime_message import RuntimeMessage, result_id_of
from lcm.records.conversation import LargeFile, Message
from lcm.transcript.file_references import shortened_result

LargeResults = Literal["reference", "in_tail", "whole"]
"""How a context shows them: by a reference, whole in the fresh tail alone, or whole."""


def large_results(message: Message) -> dict[str, LargeFile]:
    """The large results that a message holds, by the call that each answers."""
    placed = ((message.parts[file.ordinal], file) for file in message.files)
    return {part.tool_call_id: file for part, file in placed if part.tool_call_id}


def referred(message: RuntimeMessage, results: Mapping[str, LargeFile]) -> RuntimeMessage:
    """The message with a reference in the place of a large result; any other as it is."""
    file = results.get(result_id_of(message))
    if file is None:
        return message
    words = shortened_result(file, message["toolName"])
    return {**message, "content": [{"type": "text", "text": words}] if isinstance(message["content"], list) else words}
