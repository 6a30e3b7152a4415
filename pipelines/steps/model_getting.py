"""Getting a T5 from where it was published, or from a mirror."""

from collections.abc import Sequence
from pathlib import Path

from eval.models.getting import Source, source_at, source_of
from eval.models.getting import get as get_files
from lcm.compaction.summarizer.t5_files import Checkpoint, checkpoint_folder, checkpoints
from lcm.errors import ModelError
from pipelines.config.arguments import told_apart
from pipelines.views.downloading import downloading
from pipelines.views.terminal import kept, say

_OWN = ("base_url",)


def get(arguments: Sequence[str]) -> int:
    """`lcm models get NAME|URL [FOLDER] [base_url=URL]`."""
    command = told_apart(arguments, _OWN, is_configured=False)
    if len(command.words) not in (1, 2):
        raise ModelError("name one model to get: lcm models get NAME, or lcm models get URL FOLDER")
    name, *into = command.words
    checkpoint = None if "://" in name else checkpoints().get(name)
    source = _source(name, checkpoint, command.settings.get("base_url"))
    if not into and checkpoint is None:
        raise ModelError(f"name the folder that is to hold the files: lcm models get {name} FOLDER")
    folder = Path(into[0]).expanduser() if into else checkpoint_folder(name)
    if checkpoint is not None:
        say(f"{checkpoint.repository}: {checkpoint.trained_on}\nlicence: {checkpoint.licence}")
    else:
        say(f"{source.address}\nlicence: whoever published it says; lcm does not know")
    with downloading() as shown:
        manifest = get_files(source, folder, shown)
    known = {} if checkpoint is None else {file.name: file.sha256 for file in checkpoint.files}
    for file, digest in manifest.files.items():
        trust = "as published" if known.get(file) == digest else "trusted as it first came"
        say(f"{file}: {(folder / file).stat().st_size / 1e6:,.1f} MB, sha256 {digest}, {trust}")
    kept(folder)
    return 0


def _source(name: str, checkpoint: Checkpoint | None, base_url: str | None) -> Source:
    if checkpoint is not None:
        return source_of(checkpoint, base_url)
    if "://" in name:
        return source_at(name)
    raise ModelError(f"no such model: {name!r}; choose one of: {', '.join(checkpoints())}, or give a URL")
