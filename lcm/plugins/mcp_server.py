"""A server of the Model Context Protocol on standard input and output: one client, one store."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Thread
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

from lcm.encoding import well_formed
from lcm.errors import LcmError
from lcm.plugins.mcp_tools import TOOLS, AgentTools
from lcm.redaction import redacted

_NAME = "lcm"
_INSTRUCTIONS = (
    "Recalls what was said in earlier sessions, which were folded into summaries: nothing of them is lost. Begin with "
    "`search` (meaning) or `grep` (words), read more with `describe` and `expand`, which take the ids that were found."
)
_MOST_CHARACTERS = 1000
"""Of a refusal."""


def serve(opened: AbstractContextManager[AgentTools], version: str, *, may_write: bool) -> None:
    """Answer one client until it goes."""
    with served(opened, version, may_write=may_write) as server:
        anyio.run(_answer, server)


@contextmanager
def served(opened: AbstractContextManager[AgentTools], version: str, *, may_write: bool) -> "Iterator[Server[Any]]":
    """The server of some tools, which are opened, called one after another, and closed in a thread of their own."""
    with ThreadPoolExecutor(1) as worker:
        tools = worker.submit(opened.__enter__).result()
        try:
            yield _server(tools, worker, version, may_write)
        finally:
            worker.submit(opened.__exit__, None, None, None).result()


async def _answer(server: "Server[Any]") -> None:
    async with stdio_server(cast("anyio.AsyncFile[str]", _Requests())) as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


class _Requests:
    """The lines of standard input, to be waited for in vain: a client may be silent when the command is to end.

    A read cannot be given up, but the thread that reads can be left behind.
    """

    def __init__(self) -> None:
        self._lines = asyncio.Queue[bytes]()
        self._loop = asyncio.get_running_loop()
        Thread(target=self._read, daemon=True).start()

    def __aiter__(self) -> "_Requests":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", errors="replace")

    def _read(self) -> None:
        with os.fdopen(os.dup(0), "rb") as stream, suppress(RuntimeError):  # of a loop that has ended
            for line in stream:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
            self._loop.call_soon_threadsafe(self._lines.put_nowait, b"")


def _server(tools: AgentTools, worker: ThreadPoolExecutor, version: str, may_write: bool) -> "Server[Any]":
    listed = [
        types.Tool(
            name=name,
            description=TOOLS[name].description,
            input_schema=dict(TOOLS[name].parameters),
            annotations=types.ToolAnnotations(read_only_hint=not may_write, destructive_hint=False),
        )
        for name in tools.names
    ]

    async def list_tools(
        _: "ServerRequestContext[Any]", __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: "ServerRequestContext[Any]", asked: types.CallToolRequestParams) -> types.CallToolResult:
        called = asyncio.get_running_loop().run_in_executor(
            worker, _called, tools.call, asked.name, asked.arguments or {}
        )
        text, is_error = await called
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)

    return Server(_NAME, version=version, instructions=_INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool)


def _called(call: Callable[[str, Mapping[str, Any]], str], name: str, asked: Mapping[str, Any]) -> tuple[str, bool]:
    """The answer, or why there is none, in one line; and which of the two it is."""
    try:
        return well_formed(call(name, asked)), False
    except (LcmError, ValueError) as refusal:
        return well_formed(redacted(" ".join(str(refusal).split())))[:_MOST_CHARACTERS], True
