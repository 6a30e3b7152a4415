"""lcm serve [FOLDER] [judge=NAME] [judgements=FOLDER] [port=N] [open=false]

Show what lies below FOLDER (runs, where none is named) in a browser on this machine: runs, sweeps, comparisons,
regressions and studies with their pages, stores with what was said in them, a search over runs by their settings and
over all questions. Tick two runs to compare them; judge what a run found.

  lcm serve                      what lies below runs/
  lcm serve ~/experiments port=8899 open=false

  judge=NAME         who judges; else me
  judgements=FOLDER  takes the judgements, a folder for each dataset; else FOLDER/judgements. Nothing else is written
  port=N             of the page; else a free one
  open=false         do not open a browser

It answers on 127.0.0.1 alone, at an address with a random part, sets no cookie, and refuses what another page asks.
Ctrl-C ends it."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eval.comparison.comparison import compared
from eval.comparison.pairing import comparable
from eval.dataset.dataset import Dataset
from eval.judging.page import Judging
from eval.judging.session import JudgingSession
from eval.loopback import Loopback
from eval.report.page import PAGE, rendered
from eval.run import read_summary
from eval.serving.browser import Browser
from eval.serving.shelf import Shelf
from eval.tracking.entry import run_name
from lcm.context.recall.reader import Reader
from lcm.context.recall.recall import Recall
from lcm.errors import LcmError
from lcm.files import is_below
from pipelines.config import building, command_line
from pipelines.config.arguments import CommandArguments, told_apart
from pipelines.recall import opened_store
from pipelines.steps.judged_pool import JudgedPool, now_text, serve
from pipelines.steps.reporting import Reporter

_OURS = ("judge", "judgements", "port", "open")
_RUNS = "runs"
_LETTERS, _DIGITS = 64, 12
"""Of a dataset's name and digest, in the name of the folder of its judgements."""

_NOT_OF_A_NAME = re.compile("[^A-Za-z0-9_.-]")


def main(arguments: Sequence[str]) -> int:
    """`lcm serve [FOLDER] [KEY=VALUE ...]`."""
    command = told_apart(arguments, _OURS, is_configured=False)
    if len(command.words) > 1:
        raise LcmError(f"name one folder, got {', '.join(map(repr, command.words))}")
    root = Path(command.words[0] if command.words else _RUNS).expanduser()
    if not root.is_dir():
        raise LcmError(f"{root} is no folder: name one that holds runs; `lcm evaluate` makes runs/")
    judgements = Path(command.settings.get("judgements", root / "judgements")).expanduser()
    browser = Browser(Shelf(root), FolderDoors(command.settings.get("judge", "me"), judgements))
    serve(command, lambda port: Loopback(browser.routes(), port), lambda at: f"{root}: {at} (Ctrl-C ends)")
    return 0


class FolderDoors:
    """What the pages ask for, of folders on disk."""

    def __init__(self, judge: str, judgements: Path) -> None:
        self._judge, self._judgements = judge, judgements
        self._reporter = Reporter(lambda *_: None, asks_memories=False)
        self._recall: Recall = building.build(command_line.read((), "recall").config, "recall")

    def page(self, folder: Path) -> str:
        """That which lies there, which may hold ladders; else a new one, without them, which is not kept."""
        made = folder / PAGE
        if made.is_file() and not made.is_symlink():
            return made.read_text(encoding="utf-8")
        return rendered(self._reporter.page(folder))

    def compared(self, folders: Sequence[Path]) -> str:
        names = [run_name(read_summary(one), one, is_nested=False) for one in folders]
        told = [name if names.count(name) == 1 else f"{name} ({one})" for name, one in zip(names, folders, strict=True)]
        sides = [comparable(one, name) for one, name in zip(folders, told, strict=True)]
        return rendered(self._reporter.of_comparison(compared(sides)))

    def judging(self, folder: Path) -> Judging:
        pool = JudgedPool.of([folder], lambda dataset: folder_about(dataset, self._judgements))

        def finish() -> str:
            pool.export()
            return f"Kept in {pool.file.path.parent}: qrels.trec is for judgements= of lcm evaluate."

        return Judging(JudgingSession(pool.pool, pool.dataset, pool.file, self._judge, now_text), finish)

    @contextmanager
    def store(self, path: Path) -> Iterator[Reader]:
        with opened_store(CommandArguments((), {"store": str(path)}, ())) as store:
            yield self._recall.on(store)


def folder_about(dataset: Dataset, judgements: Path) -> Path:
    """The folder of the judgements about a dataset: one right below `judgements`, whatever the dataset is called."""
    name = _NOT_OF_A_NAME.sub("_", dataset.name).lstrip(".-")[:_LETTERS]
    folder = judgements / f"{name or 'dataset'}-{dataset.digest[:_DIGITS]}"
    if not is_below(folder.resolve(), [judgements.resolve()]):
        raise LcmError(f"{folder} leads out of {judgements}: remove that link, or name judgements=FOLDER")
    return folder
