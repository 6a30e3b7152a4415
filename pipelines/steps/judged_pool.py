"""What is judged: the first messages of kept runs, pooled, and the file of judgements about them."""

import sys
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import polars as pl

from eval.dataset.collection import check_ids, document_ids, write_trec_qrels
from eval.dataset.dataset import Dataset
from eval.judging.judgements import JudgementFile, qrels_of
from eval.judging.session import pooled
from eval.measures.names import SYSTEM_ARM
from eval.questions.files import write_questions
from eval.questions.question import UNANSWERABLE, Evidence, Question
from eval.run import Run
from lcm.clock import format_instant
from lcm.errors import LcmError
from pipelines.config.arguments import CommandArguments
from pipelines.steps.runs import dataset_of_run, named_messages, runs_alike
from pipelines.views.terminal import say_where

DEPTH = 10


class _Page(Protocol):
    """A page on this machine."""

    @property
    def address(self) -> str: ...

    def serve(self) -> None: ...


def serve(command: CommandArguments, page: Callable[[int], _Page], told: Callable[[str], str]) -> None:
    """Serve a page at the port that a command names, and open it unless that says otherwise; Ctrl-C ends it."""
    port = command.number("port") or 0
    try:
        made = page(port)
    except (OSError, OverflowError) as error:
        raise LcmError(f"port={port} cannot be had ({error}): leave it out, or name another") from error
    say_where(told(made.address))
    if command.settings.get("open", "true") != "false" and sys.stdout.isatty():
        webbrowser.open(made.address)
    made.serve()


def now_text() -> str:
    """The instant at which somebody judges."""
    return format_instant(datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class JudgedPool:
    """A pool of runs over a dataset, and the file of judgements."""

    runs: Sequence[Run]
    arms: Sequence[str]
    dataset: Dataset
    pool: pl.DataFrame
    file: JudgementFile

    @classmethod
    def of(
        cls,
        folders: Sequence[Path],
        into: Callable[[Dataset], Path],
        arms: Sequence[str] = (SYSTEM_ARM,),
        depth: int = DEPTH,
        queries: int | None = None,
    ) -> "JudgedPool":
        """Pool what arms of runs found, so deep; of all queries, or of so many, spread over all.

        Args:
            into: gives the folder of the judgements about a dataset.
        """
        runs = runs_alike(folders)
        dataset = dataset_of_run(runs[0])
        known = dict.fromkeys(arm for run in runs for arm in run.ranked_messages["arm"].unique(maintain_order=True))
        if unknown := [arm for arm in arms if arm not in known]:
            raise LcmError(f"no run has the arm {unknown[0]!r}; arms may be some of: {', '.join(known)}")
        names = document_ids(dataset)
        rankings = [named_messages(run.ranked_messages.filter(pl.col("arm").is_in(arms)), names) for run in runs]
        asked = [query.query_id for query in dataset.queries]
        if queries is not None and queries < len(asked):
            asked = [asked[i * len(asked) // queries] for i in range(queries)]
        check_ids(asked, "query id")  # before anybody judges
        check_ids(list(names.values()), "document id")
        pool = pooled(rankings, depth, asked)
        if pool.is_empty():
            raise LcmError("there is nothing to judge: the runs answered no query")
        return cls(runs, arms, dataset, pool, JudgementFile(into(dataset)))

    def export(self) -> None:
        """Write what is judged, whole or not at all, for evaluations and other tools."""
        qrels = qrels_of(self.file)
        folder = self.file.path.parent
        if qrels.is_empty():
            return
        write_trec_qrels(folder / "qrels.trec", qrels)
        message = {(place[0], name): place[1] for place, name in document_ids(self.dataset).items()}
        relevant: dict[str, list[str]] = {}
        for query, document, relevance in qrels.iter_rows():
            if relevance:
                relevant.setdefault(query, []).append(document)
        ways = self.dataset.generated_by_query or dict.fromkeys(relevant, self.dataset.generated)
        questions = [
            Question(
                query.query_id,
                query.text,
                tuple(Evidence(message_ids=(message[query.workspace_id, one],)) for one in relevant[query.query_id]),
                asked_at=query.asked_at,
                category="all" if query.category == UNANSWERABLE else query.category,
                workspace=query.workspace_id,
                generated=ways.get(query.query_id),
            )
            for query in self.dataset.queries
            if query.query_id in relevant
        ]
        if questions:
            write_questions(questions, folder / "questions.jsonl")
