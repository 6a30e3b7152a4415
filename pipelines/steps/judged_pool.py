"""What is judged: the first messages of kept runs, pooled, and the file of judgements about them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from eval.dataset.collection import check_ids, document_ids, write_trec_qrels
from eval.dataset.dataset import Dataset
from eval.judging.judgements import JudgementFile, qrels_of
from eval.judging.session import pooled
from eval.measures.names import SYSTEM_ARM
from eval.questions.files import write_questions
from eval.questions.question import UNANSWERABLE, Evidence, Question
from eval.run import Run
from lcm.errors import LcmError
from pipelines.steps.runs import dataset_of_run, runs_alike

DEPTH = 10


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
        """Pool what runs found.

        Args:
            folders: of the runs.
            into: gives the folder of the judgements about a dataset.
            arms: whose rankings of each run.
            depth: how many messages of each ranking.
            queries: so many, spread over all; None = all.
        Raises:
            LcmError: if a run has none of the arms, or nothing was found that could be judged.
        """
        runs = runs_alike(folders)
        dataset = dataset_of_run(runs[0])
        known = list(
            dict.fromkeys(arm for run in runs for arm in run.ranked_messages["arm"].unique(maintain_order=True))
        )
        if unknown := [arm for arm in arms if arm not in known]:
            raise LcmError(f"no run has the arm {unknown[0]!r}; arms may be some of: {', '.join(known)}")
        names = document_ids(dataset)
        rankings = []
        for run in runs:
            ranked = run.ranked_messages.filter(pl.col("arm").is_in(arms))
            places = ranked.select("workspace_id", "message_id").iter_rows()
            ranked = ranked.with_columns(document_id=pl.Series([names[place] for place in places], dtype=pl.String))
            rankings.append(ranked)
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
