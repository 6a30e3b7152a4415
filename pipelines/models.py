"""lcm models [NAME ...]
lcm models get NAME|URL [FOLDER] [base_url=URL]
lcm models export NAME|FOLDER [precision=int8]
lcm models check NAME|FOLDER [texts=FILE] [count=100] [max_new_tokens=64] [prefix=TEXT]

List the T5s that are known by name, for `summarizer=t5 summarizer.model=NAME`: what they were trained on, their licence
and size, where their files come from, and whether they are here. `pip install '.[models]'` brings what exports them and
what decodes.

  lcm models get t5-small
  lcm models export t5-small precision=int8
  lcm models check t5-small texts=mine.txt

`get` downloads one into the cache, or into FOLDER; what was cut off goes on where it was. A URL names a folder of
files, or the page of a repository of the hub, and needs a FOLDER. A file whose digest is known is held to it; any other
is trusted as it first comes, written down in the folder's download.json, and held to that from then on. Descriptions,
tokenizers and safetensors are got, never code or pickles. base_url, or $HF_ENDPOINT, names a mirror of the hub.

`export` makes the ONNX graphs that summarise, once, in the cache: else the first summary does. precision=int8 makes
those of summarizer.precision=int8.

`check` has torch and lcm summarise a hundred texts, of the bundled sample or a line each of a file, greedily and with
four beams: how many summaries are equal token by token, what int8 changes (equal ones, ROUGE-L to fp32's), and how fast
each is. It ends with 1 if fp32 does not say what torch says. Of a text that is longer the first window is read."""

from collections.abc import Sequence

from eval.models.getting import Manifest
from lcm.compaction.summarizer.t5_files import Checkpoint, checkpoint_folder, checkpoints, missing_files
from lcm.errors import LcmError
from lcm.retrieval.embedder.onnx import file_sha256
from pipelines.steps.model_checking import check_model
from pipelines.steps.model_exporting import export
from pipelines.steps.model_getting import get
from pipelines.views.terminal import say


def main(arguments: Sequence[str]) -> int:
    """`lcm models [NAME ...]`, `lcm models get | export | check NAME`."""
    actions = {"get": get, "export": export, "check": check_model}
    if arguments and arguments[0] in actions:
        return actions[arguments[0]](arguments[1:])
    for name in arguments or checkpoints():
        say(_told(_named(name)))
    return 0


def _named(name: str) -> Checkpoint:
    if name not in checkpoints():
        raise LcmError(f"no such model: {name!r}; choose one of: {', '.join(checkpoints())}")
    return checkpoints()[name]


def _told(checkpoint: Checkpoint) -> str:
    return "\n".join(
        [
            f"summarizer.model={checkpoint.name}",
            f"  size        {checkpoint.parameters / 1e6:,.1f} M parameters, {checkpoint.megabytes:,} MB to download",
            f"  trained on  {checkpoint.trained_on}",
            f"  languages   {checkpoint.languages}",
            f"  reads       {checkpoint.window_tokens:,} tokens at once, after {checkpoint.prefix!r}",
            f"  licence     {checkpoint.licence}",
            f"  origin      https://huggingface.co/{checkpoint.repository} at {checkpoint.revision}",
            f"  here        {_here(checkpoint)}",
            "",
        ]
    )


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
