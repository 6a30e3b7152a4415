"""Files that are written out in a message as `<file name="..." mime="...">body</file>`, and what kind they are.

Source: lossless-claw 0.6.3.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lcm.javascript import trim

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
        found.append(FileBlock(opening.start(), closing.end(), _attributes(opening[1]), body))
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


def _attributes(text: str) -> dict[str, str]:
    found = ((name.lower(), trim(double or single or bare)) for name, double, single, bare in _ATTRIBUTE.findall(text))
    return {name: value for name, value in found if value}
