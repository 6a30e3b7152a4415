"""A memory that is an MCP server, over its standard input and output or over HTTP: which of its tools do what stands in
the configuration."""

import json
import math
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from os import SEEK_END
from pathlib import Path
from typing import Any

from eval.external.contract import CallName, FaultError
from eval.external.leftover import end_leftover
from eval.external.mcp_tool import SearchTool, Tool, filled, named
from eval.external.stdio import allowed_command, given
from lcm.checks import check_range
from lcm.consent import refused_data, words_of_command
from lcm.errors import LcmError
from lcm.redaction import redacted

_MIB = 1 << 20
_KEPT_OF_ERRORS = 2000
"""Bytes of what a server wrote to its standard error last."""


@dataclass(frozen=True, slots=True)
class Mcp:
    """Starts a server for every workspace, or asks one that is there already."""

    command: Sequence[str | Mapping[str, Any]] = ()
    """The program and its arguments, of a server over standard input and output."""
    url: str | None = None
    """The address of a server over HTTP, in the place of a command; it is the same for all workspaces."""
    add: Tool = field(default_factory=lambda: Tool("add", {"text": "{content}"}))
    search: SearchTool = field(default_factory=lambda: SearchTool("search", {"query": "{query}", "limit": "{k}"}))
    reset: Tool | None = None
    """Called for each workspace; None: a new process is empty."""
    compact: Tool | None = None
    context: SearchTool | None = None
    environment: Sequence[str] = ()
    """Names of variables that it is given besides PATH and what every program needs."""
    timeout_s: float = 60.0
    """For each call of a tool."""
    start_s: float = 120.0
    """Until the server has told its tools."""
    reply_mib: float = 16.0
    """A reply may be no larger."""

    def __post_init__(self) -> None:
        check_range(self, "timeout_s", "start_s", "reply_mib", gt=0)

    @property
    def modules(self) -> Sequence[str]:
        return ()

    def open(self) -> "McpConnection":
        if find_spec("mcp") is None:
            raise LcmError("external=mcp needs the MCP SDK: pip install 'lcm-harness[mcp]'")
        if not (self.add.name and self.search.name):
            raise LcmError("external.add.name and external.search.name must name tools of the server")
        if self.url is not None:
            if why := refused_data(self.url):
                raise LcmError(f"external.url: {why}")
            if self.reset is None:
                raise LcmError(
                    "external.reset names no tool: a server at external.url must be emptied between workspaces"
                )
        else:
            allowed_command(self.command)
        return McpConnection(self)


class McpConnection:
    """A `Connection` to an MCP server, which runs in a thread of its own."""

    noise = 0

    def __init__(self, settings: Mcp) -> None:
        from anyio.from_thread import start_blocking_portal  # here, for it is there with the extra `mcp` alone

        self._settings = settings
        self._fault: FaultError | None = None
        self._client: Any = None
        self._open = ExitStack()
        self._home = self._open.enter_context(tempfile.TemporaryDirectory(prefix="lcm-external-"))
        self._errors = self._open.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115  # of the stack
        self._portal = self._open.enter_context(start_blocking_portal())

    def call(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._fault is not None:
            raise self._fault
        try:
            return self._replied(name, arguments)
        except FaultError as fault:
            if fault.is_end:
                self._fault = fault
            raise

    def close(self) -> None:
        home, self._home = self._home, ""
        with suppress(Exception):  # a server that is gone, or does not go: the SDK kills it
            self._open.close()
        if home:
            end_leftover(home)

    def _replied(self, name: CallName, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        settings = self._settings
        if name == "reset":
            hears_of = () if settings.reset is None else named(settings.reset.arguments)
            if "settings" in arguments and "settings" not in hears_of:
                raise LcmError("ranking.settings: external.reset has no argument {settings}: the server hears of none")
            told = self._begun()
            if settings.reset is not None:
                self._called(settings.reset, arguments)
            offers = [one for one in ("compact", "context") if getattr(settings, one) is not None]
            return {**told, "offers": offers}
        if name == "add":
            messages = arguments["messages"] if settings.add.is_each else [arguments]
            for message in messages:
                self._called(settings.add, {**arguments, **message})
            return {}
        tool = getattr(settings, name)
        texts, structured = self._called(tool, arguments)
        return {"results": tool.found(texts, structured)} if isinstance(tool, SearchTool) else {}

    def _begun(self) -> dict[str, str]:
        """Connect, and see that the server has the tools; returns what it says of itself."""
        from mcp import Client, StdioServerParameters, stdio_client

        settings = self._settings
        if self._client is None:
            if settings.url is not None:
                client = Client(settings.url, read_timeout_seconds=settings.start_s)
            else:
                program, *words = words_of_command(settings.command)
                home = {"HOME": self._home, "TMPDIR": self._home, **given(settings.environment)}
                server = StdioServerParameters(command=program, args=words, env=home, cwd=Path.cwd())
                client = Client(stdio_client(server, self._errors), read_timeout_seconds=settings.start_s)
            begun = self._portal.wrap_async_context_manager(_started(client, settings.start_s))
            with self._faults(settings.start_s, "the server does not start"):
                self._client = self._open.enter_context(begun)
        tools = self._within(settings.start_s, "the server does not tell its tools", self._client.list_tools)
        known = [tool.name for tool in tools.tools]
        wanted = (settings.add, settings.search, settings.reset, settings.compact, settings.context)
        for tool in wanted:
            if tool is not None and tool.name not in known:
                raise FaultError("error", f"there is no tool {tool.name!r}; it has: {', '.join(known)}", is_end=True)
        about = self._client.server_info
        return {"name": about.name if about else "", "version": about.version if about else ""}

    def _called(self, tool: Tool | SearchTool, values: Mapping[str, Any]) -> tuple[list[str], Any]:
        """The text blocks and the structured content that a tool gives."""
        limit_s = self._settings.timeout_s
        reply = self._within(
            limit_s, f"no reply of {tool.name}", self._client.call_tool, tool.name, filled(tool.arguments, values)
        )
        texts = [block.text for block in reply.content if block.type == "text"]
        size = max(sum(map(len, texts)), len(json.dumps(reply.structured_content)))
        if size > self._settings.reply_mib * _MIB:
            raise FaultError("reply too large", f"{size:,} characters", is_end=True)
        if reply.is_error:
            raise FaultError("error", redacted("".join(texts))[:200], is_end=False)
        return texts, reply.structured_content

    def _within(self, limit_s: float, what: str, asked: Any, *arguments: Any) -> Any:
        from anyio import fail_after

        async def bounded() -> Any:
            with fail_after(limit_s):
                return await asked(*arguments)

        with self._faults(limit_s, what):
            return self._portal.call(bounded)

    @contextmanager
    def _faults(self, limit_s: float, what: str) -> Iterator[None]:
        """What goes wrong inside, as a fault."""
        from mcp import MCPError
        from mcp_types import REQUEST_TIMEOUT

        try:
            with _first_of_groups():
                yield
        except TimeoutError as error:
            raise FaultError("timed out", f"{what} within {limit_s:g} s", is_end=True) from error
        except MCPError as error:
            if error.error.code == REQUEST_TIMEOUT:
                raise FaultError("timed out", f"{what} within {limit_s:g} s", is_end=True) from error
            is_gone = "closed" in str(error).lower()
            raise FaultError("crashed" if is_gone else "error", self._told(error), is_end=is_gone) from error
        except ValueError as error:  # what is not as the protocol says
            raise FaultError("wrong reply", self._told(error), is_end=False) from error
        except Exception as error:  # of streams, tasks and the SDK's HTTP library
            raise FaultError("crashed", f"{what}: {self._told(error)}", is_end=True) from error

    def _told(self, error: Exception) -> str:
        """An error, and the last that the server wrote to its standard error."""
        written: Any = self._errors.buffer
        size = written.seek(0, SEEK_END)
        written.seek(max(0, size - _KEPT_OF_ERRORS))
        last = written.read().decode(errors="replace").strip().splitlines()[-1:]
        return redacted(" ".join([f"{type(error).__name__}: {error}", *last]))[:300]


@asynccontextmanager
async def _started(client: Any, limit_s: float) -> AsyncIterator[Any]:
    """A client at work: connecting asks several times over, all of which is bounded together."""
    from anyio import fail_after

    with fail_after(limit_s) as bound:
        async with client:
            bound.deadline = math.inf
            yield client


@contextmanager
def _first_of_groups() -> Iterator[None]:
    """What goes wrong in a task of the SDK's comes in groups of groups: the first that is none tells why."""
    try:
        yield
    except ExceptionGroup as group:
        error: Exception = group
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from group
