"""Texts within a message that are too large for a context: a reference stands in their place.

A message stays whole in the store. Interception only notes where its large texts stand (`Message.files`) and lets
`Message.content` name them; `file_text` cuts a text out of the part that holds it, and `compacted` gives the message
with the references among its parts, as lossless-claw 0.6.3 would have stored it.

A user writes a file out in a message as `<file name="..." mime="...">body</file>`.

Source: lossless-claw 0.6.3.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from lcm.encoding import to_json, well_formed
from lcm.errors import StoreError
from lcm.javascript import trim
from lcm.protocols.models import TokenEstimator
from lcm.records.conversation import LargeFile, Message, Part
from lcm.transcript.parts import RESULT_TYPES, block_type, decompose, plain_text, rebuild

_OPENING = re.compile(r"<file\b([^>]*)>", re.ASCII | re.IGNORECASE)
_CLOSING = re.compile(r"</file>", re.ASCII | re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([A-Za-z_:][A-Za-z0-9_:.-]*)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_EXTENSION = re.compile(r"[a-z0-9]{1,10}")

MIME_EXTENSIONS: dict[str, str] = {
    **dict.fromkeys(("application/json", "application/x-ndjson"), "json"),
    **dict.fromkeys(("application/xml", "text/xml"), "xml"),
    **dict.fromkeys(("application/yaml", "application/x-yaml"), "yaml"),
    **dict.fromkeys(("application/csv", "text/csv"), "csv"),
    "text/tab-separated-values": "tsv",
    "text/markdown": "md",
    "text/plain": "txt",
    "application/javascript": "js",
    **dict.fromkeys(("application/typescript", "text/x-typescript"), "ts"),
    **dict.fromkeys(("application/x-python-code", "text/x-python", "text/x-script.python"), "py"),
    **dict.fromkeys(("application/x-rust", "text/x-rust"), "rs"),
    **dict.fromkeys(("application/x-sh", "text/x-shellscript"), "sh"),
    "text/x-c": "c",
    "text/x-c++": "cpp",
    "text/x-go": "go",
    "text/x-java": "java",
}
"""What a file of that type is usually called."""


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A file that is quoted in a message's text; `text[start:stop]` is the block with its tags."""

    start: int
    stop: int
    attributes: Mapping[str, str]
    """Keys in lower case, the last value of each; empty values are left out."""
    body: str

    @property
    def name(self) -> str | None:
        return self.attributes.get("name")

    @property
    def mime_type(self) -> str | None:
        return self.attributes.get("mime")


def file_blocks(text: str) -> list[FileBlock]:
    """Find the files of a text, in order; the first closing tag ends each, so none stands within another."""
    found, at = [], 0
    while (opening := _OPENING.search(text, at)) and (closing := _CLOSING.search(text, opening.end())):
        body = text[opening.end() : closing.start()]
        named = ((name.lower(), trim("".join(values))) for name, *values in _ATTRIBUTE.findall(opening[1]))
        given = {name: value for name, value in named if value}
        found.append(FileBlock(opening.start(), closing.end(), given, body))
        at = closing.end()
    return found


def extension(name: str | None, mime_type: str | None) -> str:
    """The ending of a file, in lower case without its dot: of its name, else by its type, else `txt`."""
    return name_extension(name) or mime_extension(mime_type) or "txt"


def name_extension(name: str | None) -> str | None:
    """One to ten letters and digits behind the last dot; a name that begins with its only dot has no ending."""
    stem, _, ending = re.split(r"[\\/]", trim(name or ""))[-1].rpartition(".")
    return ending.lower() if stem and _EXTENSION.fullmatch(ending.lower()) else None


def mime_extension(mime_type: str | None) -> str | None:
    return MIME_EXTENSIONS.get(trim((mime_type or "").partition(";")[0]).lower())


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


Explore = Callable[[str, str | None, str | None], str]
"""A text, its name and its mime type to what stands for it in a context."""

_REASON = "large_tool_result"


class _LargeText(NamedTuple):
    """A text that could be taken out of a message."""

    ordinal: int
    position: int
    name: str | None
    mime_type: str | None
    text: str


def intercepted(
    message: Message,
    threshold_tokens: int,
    token_estimator: TokenEstimator,
    explore: Explore,
    *,
    every_tool_result: bool = False,
) -> Message:
    """Note the large texts of a message: the files that a user writes out, and the results of tools.

    Args:
        message: as a transcript reader made it; one without parts, or with `files` already, is given back.
        threshold_tokens: a text of as many tokens is large.
        token_estimator: counts them.
        explore: says what stands in a text's place.
        every_tool_result: take results that are a plain string too, and those within messages of the user; False:
            blocks of a tool's message alone, as lossless-claw 0.6.3.
    """
    if message.files or not message.parts or "native" not in message.envelope:
        return message
    found = list(_texts(message, every_tool_result))
    counts = token_estimator.count([text.text for text in found])
    files = tuple(
        LargeFile(
            file_id=_file_id([message.message_id, text.ordinal, text.position]),
            ordinal=text.ordinal,
            position=text.position,
            name=text.name,
            mime_type=text.mime_type,
            byte_size=len(text.text.encode("utf-8", "surrogatepass")),
            exploration_summary=well_formed(explore(text.text, text.name, text.mime_type)),
        )
        for text, count in zip(found, counts, strict=True)
        if count >= max(1, threshold_tokens)
    )
    if not files:
        return message
    named = replace(message, files=files)
    return replace(named, content=compacted(named).content)


def file_text(message: Message, file: LargeFile) -> str:
    """The words of a large file, cut out of the message's part again.

    Raises:
        StoreError: if the message does not hold it.
    """
    for text in _texts(message, every_tool_result=True):
        if (text.ordinal, text.position) == (file.ordinal, file.position):
            return text.text
    raise StoreError(f"message {message.message_id!r} does not hold the file {file.file_id!r}")


def compacted(message: Message) -> Message:
    """The message with references in the place of its large texts; one without such texts as it is."""
    if not message.files:
        return message
    by_part: dict[int, list[LargeFile]] = defaultdict(list)
    for file in message.files:
        by_part[file.ordinal].append(file)
    blocks = [
        _compacted_block(message, part, by_part[ordinal]) if ordinal in by_part else part.metadata.get("raw", part.text)
        for ordinal, part in enumerate(message.parts)
        if part.metadata.get("slot") == "content"
    ]
    native = rebuild(message)
    is_text = all(isinstance(block, str) or block_type(block) in ("text", "input_text") for block in blocks)
    native["content"] = plain_text({"content": blocks}) if message.role == "user" and is_text else blocks
    said = decompose(native, None if isinstance(native.get("role"), str) else message.role)
    envelope = {**message.envelope, **said.envelope}
    return replace(message, content=said.content, parts=said.parts, envelope=envelope)


def _texts(message: Message, every_tool_result: bool) -> Iterator[_LargeText]:
    """The texts of a message that could be taken out, each with its part and its place there."""
    for ordinal, part in enumerate(message.parts):
        if part.metadata.get("slot") != "content":
            continue
        block = part.metadata.get("raw", part.text)
        if _is_result(message, block, every_tool_result):
            if text := _result_text(block):
                yield _LargeText(ordinal, 0, f"{_tool_name(part)}.txt", "text/plain", text)
        elif message.role == "user":
            for position, file in enumerate(file_blocks(_user_text(block))):
                yield _LargeText(ordinal, position, file.name, file.mime_type, file.body)


def _is_result(message: Message, block: object, every_tool_result: bool) -> bool:
    if message.role == "tool":
        return every_tool_result or isinstance(block, dict)
    return every_tool_result and block_type(block) in RESULT_TYPES


def _user_text(block: object) -> str:
    """The words of what a user says in one block; of results and media none."""
    is_text = isinstance(block, str) or block_type(block) in ("text", "input_text")
    return plain_text({"content": block if isinstance(block, str) else [block]}) if is_text else ""


def _result_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if block_type(block) == "text":
        return block["text"] if isinstance(block.get("text"), str) else None
    if block_type(block) not in RESULT_TYPES:
        return None
    value = next((block[key] for key in ("output", "content") if block.get(key) is not None), block)
    return plain_text({"content": value}) or None


def _tool_name(part: Part) -> str:
    return trim(part.tool_name or "") or TOOL_RESULT_NAME


def _compacted_block(message: Message, part: Part, files: list[LargeFile]) -> Any:
    block = part.metadata.get("raw", part.text)
    if message.role != "user" or block_type(block) in RESULT_TYPES:
        return _compacted_result(message, part, block, files[0])
    text = _user_text(block)
    by_position = {file.position: file for file in files}
    pieces, at = [], 0
    for position, found in enumerate(file_blocks(text)):
        if position in by_position:
            pieces += [text[at : found.start], file_reference(by_position[position])]
            at = found.stop
    words = "".join([*pieces, text[at:]])
    return {**block, "text": words} if isinstance(block, dict) else words


def _compacted_result(message: Message, part: Part, block: Any, file: LargeFile) -> dict[str, Any]:
    """The block that stands for a large result: what names its call and tool, and the reference."""
    native: Mapping[str, Any] = message.envelope["native"]
    recorded: Mapping[str, Any] = block if isinstance(block, dict) else {}
    kind = block_type(block) if isinstance(block, dict) else "text"
    reference = tool_output_reference(file, _tool_name(part))
    shortened: dict[str, Any] = {"type": kind}
    shortened |= {"text": reference, "rawType": "tool_result"} if kind == "text" else {"output": reference}
    shortened |= {
        "externalizedFileId": file.file_id,
        "originalByteSize": file.byte_size,
        "toolOutputExternalized": True,
        "externalizationReason": _REASON,
    }
    if part.tool_call_id is not None:
        shortened["call_id" if kind == "function_call_output" else "tool_use_id"] = part.tool_call_id
    for key in ("is_error", "isError"):
        for holder in (recorded, native):
            if isinstance(holder.get(key), bool):
                shortened.setdefault(key, holder[key])
    if part.tool_name:
        shortened["name"] = part.tool_name
    return shortened


def _file_id(place: list[Any]) -> str:
    """Follows from the place, so that hearing a message again names its files the same."""
    return f"file_{hashlib.sha256(to_json(place).encode()).hexdigest()[:16]}"
