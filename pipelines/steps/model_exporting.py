"""Exporting a T5 to the ONNX graphs that summarise."""

from collections.abc import Sequence

from lcm.compaction.summarizer.t5_files import T5Files
from lcm.errors import ModelError
from lcm.retrieval.embedder.export import RECORD, Precision
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import kept, say

_PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")


def export(arguments: Sequence[str]) -> int:
    """`lcm models export NAME|FOLDER [precision=int8]`."""
    command = told_apart(arguments, ("precision",), is_configured=False)
    if len(command.words) != 1:
        raise ModelError("name one model to export: lcm models export NAME, or lcm models export FOLDER")
    precision: Precision = "int8" if command.choice("precision", _PRECISIONS, "fp32") == "int8" else "fp32"
    files = T5Files.find(command.words[0], precision)
    for graph in (files.encoder, files.decoder, files.decoder_with_past):
        say(f"{graph.name}: {graph.stat().st_size / 1e6:,.1f} MB")
    how = f"versions and digests in {RECORD}" if (files.folder / RECORD).is_file() else "used as it is"
    kept(files.folder, f" ({precision}, {how})")
    return 0
