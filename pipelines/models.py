"""lcm models [NAME ...]
lcm models get NAME|URL [FOLDER] [base_url=URL]

List the T5s that are known by name, for `summarizer=t5 summarizer.model=NAME`: what they were trained on, their licence
and size, where their files come from, and whether they are here. `pip install '.[models]'` brings what decodes them.

  lcm models get t5-small

`get` downloads one into the cache, or into FOLDER; what was cut off goes on where it was. A URL names a folder of
files, or the page of a repository of the hub, and needs a FOLDER. A file whose digest is known is held to it; any other
is trusted as it first comes, written down in the folder's download.json, and held to that from then on. Descriptions,
tokenizers and safetensors are got, never code or pickles. base_url, or $HF_ENDPOINT, names a mirror of the hub."""

from collections.abc import Sequence
from pathlib import Path

from eval import models
from eval.models import Manifest, source_at, source_of
from lcm.compaction.summarizer.t5_files import Checkpoint, checkpoint_folder, checkpoints, missing_files
from lcm.errors import LcmError, ModelError
from lcm.retrieval.embedder.export import file_sha256
from pipelines.config.arguments import told_apart
from pipelines.views.progress import downloading
from pipelines.views.terminal import kept, say


def main(arguments: Sequence[str]) -> int:
    """`lcm models [NAME ...]`, `lcm models get NAME`."""
    if arguments and arguments[0] == "get":
        return get(arguments[1:])
    for name in arguments or checkpoints():
        if name not in checkpoints():
            raise LcmError(f"no such model: {name!r}; choose one of: {', '.join(checkpoints())}")
        one = checkpoints()[name]
        say(
            f"summarizer.model={one.name}\n"
            f"  size        {one.parameters / 1e6:,.1f} M parameters, {one.megabytes:,} MB to download\n"
            f"  trained on  {one.trained_on}\n"
            f"  languages   {one.languages}\n"
            f"  reads       {one.window_tokens:,} tokens at once, after {one.prefix!r}\n"
            f"  licence     {one.licence}\n"
            f"  origin      https://huggingface.co/{one.repository} at {one.revision}\n"
            f"  here        {_here(one)}\n"
        )
    return 0


def _here(checkpoint: Checkpoint) -> str:
    """Whether its files are in the cache, and are what they are called."""
    folder = checkpoint_folder(checkpoint.name)
    missing = missing_files(checkpoint, folder)
    if len(missing) == len(checkpoint.files):
        return f"no: lcm models get {checkpoint.name}"
    if missing:
        return f"{folder} lacks {', '.join(missing)}: lcm models get {checkpoint.name} goes on"
    manifest = Manifest.read(folder)
    first = {} if manifest is None else manifest.files
    expected = {file.name: file.sha256 or first.get(file.name) for file in checkpoint.files}
    wrong = [name for name, digest in expected.items() if digest not in (None, file_sha256(folder / name))]
    if wrong:
        return f"{folder}, but {', '.join(wrong)} is another file: remove it and get it again"
    pinned = sum(file.sha256 is not None for file in checkpoint.files)
    trusted = len(checkpoint.files) - pinned
    return f"{folder}: {pinned} files of known digests, {trusted} as they first came"


def get(arguments: Sequence[str]) -> int:
    """`lcm models get NAME|URL [FOLDER] [base_url=URL]`."""
    command = told_apart(arguments, ("base_url",), is_configured=False)
    if len(command.words) not in (1, 2):
        raise ModelError("name one model to get: lcm models get NAME, or lcm models get URL FOLDER")
    name, *into = command.words
    checkpoint = None if "://" in name else checkpoints().get(name)
    if checkpoint is None and "://" not in name:
        raise ModelError(f"no such model: {name!r}; choose one of: {', '.join(checkpoints())}, or give a URL")
    source = source_at(name) if checkpoint is None else source_of(checkpoint, command.settings.get("base_url"))
    if not into and checkpoint is None:
        raise ModelError(f"name the folder that is to hold the files: lcm models get {name} FOLDER")
    folder = Path(into[0]).expanduser() if into else checkpoint_folder(name)
    if checkpoint is not None:
        say(f"{checkpoint.repository}: {checkpoint.trained_on}\nlicence: {checkpoint.licence}")
    else:
        say(f"{source.address}\nlicence: whoever published it says; lcm does not know")
    with downloading() as shown:
        manifest = models.get(source, folder, shown)
    known = {} if checkpoint is None else {file.name: file.sha256 for file in checkpoint.files}
    for file, digest in manifest.files.items():
        trust = "as published" if known.get(file) == digest else "trusted as it first came"
        say(f"{file}: {(folder / file).stat().st_size / 1e6:,.1f} MB, sha256 {digest}, {trust}")
    kept(folder)
    return 0
