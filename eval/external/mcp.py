"""A memory that is an MCP server, over its standard input and output or over HTTP.

Which of its tools do what, how a call of the contract becomes a call of one, and how what it says becomes texts, stands
in the configuration.
"""

import json
import math
import re
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from os import SEEK_END
from pathlib import Path
from typing import Any

from eval.external.process import allowed_command, end_leftover, given
from eval.external.session import CallName, FaultError, Limits
from lcm.consent import refused_data, words_of_command
from lcm.errors import LcmError
from lcm.redaction import redacted

_NAME = re.compile(r"\{(\w+)\}")
_OF_MESSAGES = ("id", "role", "content", "author", "created_at", "session_id", "conversation_id", "messages")
_OF_QUERIES = ("query", "k", "asked_at", "scopes", "budget_tokens")
NAMES = ("workspace", "settings", *_OF_MESSAGES, *_OF_QUERIES)
"""What arguments may name in braces."""


@dataclass(frozen=True, slots=True)
class AnyTool:
    """A tool of a server, with its own arguments."""

    name: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """JSON: `{content}` in a text is the call's argument of that name, and a text that is nothing else is that argument
    itself, be it a number or a list."""

    def __post_init__(self) -> None:
        for name in named(self.arguments):
            if name not in NAMES:
                raise ValueError(f"arguments name {{{name}}}, which no call has; choose from: {', '.join(NAMES)}")


@dataclass(frozen=True, slots=True)
class Tool(AnyTool):
    """A tool that takes something in."""

    is_each: bool = True
    """Of `add`: a call for each message; else one for `{messages}`."""


@dataclass(frozen=True, slots=True)
class SearchTool(AnyTool):
    """A tool that finds something."""

    results: str | None = "results"
    """Where the list of results stands in the structured content, or in the JSON of the text: keys with dots between,
    empty for the whole; null: each text block is a result."""
    separator: str | None = None
    """What stands between the results of a text block; null: a block is one."""
    text: str = "text"
    """Where a result has its text; a list there is joined by line breaks. A result that is a text itself is one."""
    score: str | None = "score"
    source_ids: str | None = None
    """Where it names the messages that it is of: a text, or a list."""

    def found(self, texts: Sequence[str], structured: Any) -> list[dict[str, Any]]:
        """The results as a reply to `search` has them, from text blocks and the structured content if there is some;
        FaultError where these hold none."""
        if self.results is None:
            parts = [one for text in texts for one in (text.split(self.separator) if self.separator else [text])]
            return [{"text": one.strip()} for one in parts if one.strip()]
        whole = structured if structured is not None else _json("".join(texts))
        listed = at(whole, self.results)
        if not isinstance(listed, list):
            raise FaultError("wrong reply", f"{self.name} gives no list at {self.results!r}", is_end=False)
        return [self._result(one) for one in listed]

    def _result(self, one: Any) -> dict[str, Any]:
        text = one if isinstance(one, str) else at(one, self.text)
        ids = None if self.source_ids is None else at(one, self.source_ids)
        return {
            "text": "\n".join(map(str, text)) if isinstance(text, list) else text,
            "score": None if self.score is None else at(one, self.score),
            "source_ids": [ids] if isinstance(ids, str) else ids,
        }


def filled(template: Any, values: Mapping[str, Any]) -> Any:
    """Arguments of a tool with what they name in its place."""
    if isinstance(template, Mapping):
        return {name: filled(one, values) for name, one in template.items()}
    if isinstance(template, list | tuple):
        return [filled(one, values) for one in template]
    if not isinstance(template, str):
        return template
    if whole := _NAME.fullmatch(template):
        return values.get(whole[1])
    return _NAME.sub(lambda found: str(values.get(found[1]) or "") if found[1] in NAMES else found[0], template)


def named(template: Any) -> list[str]:
    """What arguments name in braces."""
    return _NAME.findall(json.dumps(template, default=str))


def at(node: Any, path: str) -> Any:
    """What stands at keys with dots between; None where nothing does."""
    for name in filter(None, path.split(".")):
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_KEPT_OF_ERRORS = 2000
"""Bytes of what a server wrote to its standard error last."""


@dataclass(frozen=True, slots=True)
class Mcp(Limits):
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

    def _called(self, tool: AnyTool, values: Mapping[str, Any]) -> tuple[list[str], Any]:
        """The text blocks and the structured content that a tool gives."""
        limit_s = self._settings.timeout_s
        reply = self._within(
            limit_s, f"no reply of {tool.name}", self._client.call_tool, tool.name, filled(tool.arguments, values)
        )
        texts = [block.text for block in reply.content if block.type == "text"]
        size = max(sum(map(len, texts)), len(json.dumps(reply.structured_content)))
        if size > self._settings.most_bytes:
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
