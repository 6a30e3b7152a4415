"""lcm mcp store=FILE [agent=ID] [grant=CONVERSATION] [write=true] [GROUP=CHOICE] [KEY=VALUE]

Let an agent's program (Claude Code, Codex, any client of the Model Context Protocol) recall what a store holds: it
starts this command and asks on standard input. Tools: search, grep, describe, expand, expand_query, context.

  claude mcp add memory -- lcm mcp store=/home/me/memory.db

  agent=ID             read as that agent: its scopes, and no other's; left out, everything
  grant=CONVERSATION   lend a sub-agent that conversation alone, recall.max_expand_tokens=N tokens of it, for
                       recall.grant_ttl_seconds=N: grep, describe and expand
  write=true           keep in the store what search and context make: documents, vectors, what counts as used; else
                       they work on a copy in this process, and nothing is ever written

What answers is configured as for `lcm evaluate` (system=..., embedder=...) and `lcm grep` (recall=..., answerer=...).
Needs the package mcp: pip install '.[mcp]' in the checkout."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace

from lcm import __version__
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError
from lcm.files import cache_dir
from lcm.memory.system import System
from lcm.plugins.mcp_tools import AgentTools, OpenedMemory
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.store.store import Store
from pipelines.config import building, command_line, contracts
from pipelines.config.arguments import CommandArguments
from pipelines.recall import named_asker, named_store, now

_OWN = ("store", "agent", "grant", "write")
_BUILT = ("memory", "recall", "cache")


def main(arguments: Sequence[str]) -> int:
    """`lcm mcp store=FILE [KEY=VALUE ...]`."""
    asked = command_line.read(arguments, "mcp", _OWN)
    if asked.words:
        raise LcmError(f"this command takes KEY=VALUE alone, got {asked.words[0]!r}; a store is named by store=FILE")
    contracts.refuse_unused(asked.config, asked.overrides, "mcp", _BUILT)
    command = CommandArguments((), dict(asked.own), asked.overrides)
    try:
        from lcm.plugins.mcp_server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "anyio"):
            raise
        raise LcmError("lcm mcp needs the package mcp, which is not installed: pip install '.[mcp]'") from error
    parts = building.build_all(asked.config, ("memory", "recall"))
    system: System = parts["memory"]
    if building.flag(asked.config, "cache"):
        system = replace(system, embedder=CachedEmbedder(system.embedder, cache_dir() / "embeddings"))
    may_write = command.flag("write")
    serve(_opened(command, system, parts["recall"], may_write=may_write), __version__, may_write=may_write)
    return 0


@contextmanager
def _opened(command: CommandArguments, system: System, recall: Recall, *, may_write: bool) -> Iterator[AgentTools]:
    """The tools over the store that was named, for whom the command names."""
    path = named_store(command)
    asker, lent = named_asker(command, system.scopes), command.settings.get("grant")
    with Store(path, may_write=may_write) as store:
        reader = recall.on(store, None if asker.scopes is None else asker.reads_conversation)
        if lent is not None:
            rows = reader.bounds(lent).conversations or ()
            reader = recall.grant_access(reader, rows, now)
        with closing(OpenedMemory(system, path, store, may_write=may_write)) as memory:
            yield AgentTools(recall, reader, memory, asker, now)
