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
from dataclasses import asdict
from pathlib import Path

from eval.models.checking import Checked, Result, check, sample_texts, texts_of
from eval.models.getting import Manifest, Source, source_at, source_of
from eval.models.getting import get as get_files
from eval.table import Column
from lcm.compaction.summarizer.t5_files import Checkpoint, T5Files, checkpoint_folder, checkpoints, missing_files
from lcm.errors import LcmError, ModelError
from lcm.retrieval.embedder.export import RECORD, Precision, file_sha256
from pipelines.config.arguments import told_apart
from pipelines.views.output import output
from pipelines.views.progress import downloading, progress
from pipelines.views.terminal import kept, say, show_table

_OF_CHECK = ("texts", "count", "max_new_tokens", "prefix")
_COUNT, _MAX_NEW_TOKENS, _PREFIX = 100, 64, "summarize: "
DIFFERS = 1
"""The exit code where full precision does not say what torch says."""
_NUMBERS = (("beams", 0), ("batch", 0), ("equal", 0), ("close", 0), ("ROUGE-L", 3), ("tokens/s", 1), ("s/summary", 3))
"""Columns of what is checked, and their digits."""


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


def export(arguments: Sequence[str]) -> int:
    """`lcm models export NAME|FOLDER [precision=int8]`."""
    command = told_apart(arguments, ("precision",), is_configured=False)
    if len(command.words) != 1:
        raise ModelError("name one model to export: lcm models export NAME, or lcm models export FOLDER")
    precision: Precision = "int8" if command.choice("precision", ("fp32", "int8"), "fp32") == "int8" else "fp32"
    files = T5Files.find(command.words[0], precision)
    for graph in (files.encoder, files.decoder, files.decoder_with_past):
        say(f"{graph.name}: {graph.stat().st_size / 1e6:,.1f} MB")
    how = f"versions and digests in {RECORD}" if (files.folder / RECORD).is_file() else "used as it is"
    kept(files.folder, f" ({precision}, {how})")
    return 0


def get(arguments: Sequence[str]) -> int:
    """`lcm models get NAME|URL [FOLDER] [base_url=URL]`."""
    command = told_apart(arguments, ("base_url",), is_configured=False)
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


def check_model(arguments: Sequence[str]) -> int:
    """`lcm models check NAME|FOLDER [texts=FILE]`; returns the exit code."""
    command = told_apart(arguments, _OF_CHECK, is_configured=False)
    if len(command.words) != 1:
        raise ModelError("name one model to check: lcm models check NAME, or lcm models check FOLDER")
    count, limit = command.number("count") or _COUNT, command.number("max_new_tokens") or _MAX_NEW_TOKENS
    named = command.settings.get("texts")
    texts = sample_texts(count) if named is None else texts_of(Path(named).expanduser(), count)
    with progress() as show:
        found = check(command.words[0], texts, limit, command.settings.get("prefix", _PREFIX), show)
    _show(found)
    return 0 if found.holds else DIFFERS


def _show(found: Checked) -> None:
    say(
        f"{found.model}: {found.texts} texts, summaries of at most {found.limit} tokens, {found.threads} threads; "
        "beside torch's, token by token"
    )
    show_table(("by", *(Column(name, "number", digits) for name, digits in _NUMBERS)), map(_row, found.results))
    says = "says what torch says" if found.holds else "does not say what torch says"
    say(f"fp32 {says}; close: two choices within 1e-4 nats, so that rounding decides")
    results = [{**asdict(one), "tokens_per_second": one.tokens_per_second} for one in found.results]
    output().result = {**asdict(found), "holds": found.holds, "results": results}


def _row(one: Result) -> tuple[object, ...]:
    held = one.agreement
    shares = ("", "") if held is None else (f"{held.equal} of {one.texts}", held.close)
    rouge_l = "" if one.rouge_l is None else one.rouge_l
    return one.by, one.beams, one.batch_size, *shares, rouge_l, one.tokens_per_second, one.seconds_per_summary
