"""A bare-files memory as an MCP server: notes are Markdown files below a folder, and search is grep.

python files_server.py [BEHAVIOUR]
"""

import re
import sys
import tempfile
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("bare-files", version="1")
folder = Path(tempfile.mkdtemp())
behaviour = sys.argv[1] if len(sys.argv) > 1 else "honest"


@server.tool()
def write_note(day: str, line: str) -> str:
    """Put a line behind the note of a day."""
    with (folder / f"{day or 'undated'}.md").open("a", encoding="utf-8") as note:
        note.write(f"- {' '.join(line.split())}\n")
    return "written"


@server.tool()
def grep(words: str, limit: int) -> dict[str, list[dict[str, object]]]:
    """The lines that hold most of some words."""
    if behaviour == "hangs":
        time.sleep(60)
    if behaviour == "crashes":
        sys.stderr.write("the disk is gone\n")
        sys.stderr.flush()
        import os

        os._exit(3)
    if behaviour == "errs":
        raise ValueError("no such note")
    wanted = set(re.findall(r"\w+", words.lower()))
    lines = [line[2:].strip() for note in sorted(folder.glob("*.md")) for line in note.open(encoding="utf-8")]
    counted = [(len(wanted & set(re.findall(r"\w+", line.lower()))), line) for line in lines]
    best = sorted((one for one in counted if one[0]), key=lambda one: -one[0])
    return {"lines": [{"line": line, "hits": hits} for hits, line in best[:limit]]}


@server.tool()
def show(tokens: int) -> str:
    """The newest notes, as text."""
    return "\n\n".join(note.read_text(encoding="utf-8") for note in sorted(folder.glob("*.md")))[: 4 * tokens]


server.run()
