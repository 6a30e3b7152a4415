"""lcm cache [prune | clear] [NAME ...] [stages.max_gib=GIB] [stages.directory=FOLDER]

Show what is kept between runs: stages (checkpoints of replays, candidate pools, answers, measures), embeddings, models,
recorded replies. Whatever is removed is made again when it is needed, save recorded replies, which are asked for again.

  lcm cache                             what is there, by name
  lcm cache prune                       remove the stages that were not used for longest, down to stages.max_gib
  lcm cache prune stages.max_gib=1      down to 1 GiB
  lcm cache prune pools stages.max_gib=1
                                        only the stages of this name, down to 1 GiB of them; likewise of each named
  lcm cache clear pools ranked          remove all stages of these names
  lcm cache clear                       remove all stages
  lcm cache clear embeddings            remove the embeddings, too: naming them is the only way"""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from eval.cache.stage_cache import Entry, StageCache
from eval.table import Column
from lcm.errors import LcmError
from lcm.files import cache_dir
from pipelines.config import building, composition
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import say, show_table

_MIB = 1 << 20
_STAGES = {
    "checkpoints": "workspaces as they were when questions were asked",
    "pools": "candidates of every source",
    "ranked": "answers of every arm",
    "measured": "what measures read of memories",
    "facts": "documents and decisions of workspaces",
    "values": "measures by query",
    "means": "measures with their intervals",
}
_OTHERS = {
    "embeddings": "vectors of texts",
    "models": "exported models",
    "replies": "recorded replies of language models",
}


def main(arguments: Sequence[str]) -> int:
    """`lcm cache [prune | clear] [NAME ...] [KEY=VALUE ...]`."""
    command = told_apart(arguments)
    action, *names = command.words or ("show",)
    cache: StageCache = building.build(composition.composed(command.overrides), "stages")
    known: Mapping[str, Mapping[str, str]] = {"show": {}, "prune": _STAGES, "clear": {**_STAGES, **_OTHERS}}
    if action not in known:
        raise LcmError(f"no such action: {action!r}; choose one of: prune, clear, or none to see what is there")
    if action == "show" and names:
        raise LcmError(f"lcm cache show takes no name, got {names[0]!r}: it shows all")
    if wrong := next((name for name in names if name not in known[action]), None):
        raise LcmError(f"no stages called {wrong!r} can be removed so; choose from: {', '.join(known[action])}")
    if action == "show":
        _show(cache)
        return 0
    removed: list[Entry] = []
    wanted: Sequence[str | None] = names or (list(_STAGES) if action == "clear" else [None])
    for name in wanted:
        if name is not None and name in _OTHERS:
            if (folder := cache_dir() / name).is_dir():
                shutil.rmtree(folder)
            say(f"Removed: {folder}")
        else:
            removed += cache.prune(0.0 if action == "clear" else None, name)
    size = sum(entry.size_bytes for entry in removed) / _MIB
    say(f"Removed: {len(removed):,} stages, {size:,.1f} MiB")
    return 0


def _show(cache: StageCache) -> None:
    rows = []
    entries = cache.entries()
    for name, what in _STAGES.items():
        of_it = [entry for entry in entries if entry.stage == name]
        if of_it:
            used = datetime.fromtimestamp(of_it[-1].used_at, UTC)
            size = sum(entry.size_bytes for entry in of_it)
            rows.append((name, what, len(of_it), size / _MIB, f"{used:%Y-%m-%d %H:%M} UTC"))
    for name, what in _OTHERS.items():
        files = [file for file in (cache_dir() / name).rglob("*") if file.is_file()]
        if files:
            size = sum(file.stat().st_size for file in files)
            rows.append((name, what, len(files), size / _MIB, ""))
    show_table(("name", "what", Column("entries", "number"), Column("MiB", "number", 1), "last used"), rows)
    total = sum(entry.size_bytes for entry in entries)
    say(f"{total / _MIB:,.1f} MiB of stages in {cache.folder}, of {cache.max_gib:g} GiB (stages.max_gib)")
