"""Writing a dataset, and what was ranked over it, in the formats of other tools."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from eval.dataset.collected import collection_of, document_ids
from eval.dataset.dataset import Dataset
from eval.exchange.beir import write_beir
from eval.exchange.trec import check_ids, write_trec_qrels, write_trec_run
from eval.run import Run
from lcm.errors import LcmError
from lcm.files import file_name
from pipelines.config import composition
from pipelines.config.arguments import told_apart
from pipelines.steps.point import dataset_described
from pipelines.steps.runs import dataset_of_run, runs_alike
from pipelines.views.terminal import kept, say

FORMATS = ("beir", "trec")


def write(arguments: Sequence[str]) -> int:
    """`lcm datasets write [RUN ...] to=FOLDER [dataset=NAME] [formats=beir,trec]`."""
    command = told_apart(arguments, ("to", "formats"))
    formats = command.settings.get("formats", ",".join(FORMATS)).strip("[]").split(",")
    if unknown := [one for one in formats if one not in FORMATS]:
        raise LcmError(f"formats must be some of {', '.join(FORMATS)}, got {unknown[0]!r}")
    if "to" not in command.settings:
        raise LcmError("to=FOLDER is missing: the folder that is to hold the files")
    to = Path(command.settings["to"]).expanduser()
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise LcmError(f"to={to} holds something already: name a new folder")
    runs = runs_alike([Path(word) for word in command.words]) if command.words else []
    if runs and command.overrides:
        raise LcmError(f"a run says which dataset it was made on: leave {command.overrides[0]} out, or the run")
    dataset = dataset_of_run(runs[0]) if runs else dataset_described(composition.composed(command.overrides))
    collection, notes = collection_of(dataset)
    if "trec" in formats:  # before anything is written
        check_ids(collection.queries["query_id"], "query id")
        check_ids(collection.corpus["document_id"], "document id")
    if "beir" in formats:
        write_beir(to, collection)
    if "trec" in formats:
        write_trec_qrels(to / "qrels.trec", collection.qrels)
        for run in runs:
            _write_run(run, dataset, to / "runs")
    candidates = "" if collection.candidates is None else ", what each query may be answered with (top_ranked.jsonl)"
    say(
        f"{dataset.name} ({dataset.protocol}): {len(collection.corpus)} documents, {len(collection.queries)} queries, "
        f"{len(collection.qrels)} judgements{candidates}"
    )
    for note in (*notes, *dataset.notes):
        say(f"note: {note}")
    kept(to)
    return 0


def _write_run(run: Run, dataset: Dataset, to: Path) -> None:
    """Each arm as a TREC run of its own."""
    names = document_ids(dataset)
    for (arm,), ranked in run.ranked_messages.group_by("arm", maintain_order=True):
        places = ranked.select("workspace_id", "message_id").iter_rows()
        named = ranked.with_columns(document_id=pl.Series([names[place] for place in places], dtype=pl.String))
        path = to / f"{run.name}.{file_name(arm)}.trec"
        if not write_trec_run(path, named, tag=f"{run.name}.{arm}".replace(" ", "_")):
            say(f"note: {path.name}: its own scores do not fall with its ranks, so 1 / rank stands in their place")
