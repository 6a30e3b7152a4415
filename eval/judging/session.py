"""A judge at work on a pool: what comes next, what was said, and taking it back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from eval.dataset.collection import document_ids
from eval.dataset.dataset import Dataset
from eval.judging.judgement import GRADES, Judgement
from eval.judging.judgement_file import JudgementFile
from lcm.clock import format_instant
from lcm.records.conversation import Message
from lcm.transcript.passages import PASSAGE_KINDS
from lcm.writing.extraction.said import words_of

AROUND = 3
"""Messages that are shown before and after the one that is judged."""
_LONGEST, _LONGEST_AROUND = 20_000, 1_500
"""Characters that are shown of the message that is judged, and of each around it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the messages of a dataset stand: (workspace, document id) -> its conversation and position there."""

    found: dict[tuple[str, str], tuple[Sequence[Message], int]]

    @classmethod
    def of(cls, dataset: Dataset) -> "Places":
        names = document_ids(dataset)
        return cls(
            {
                (transcript.workspace_id, names[transcript.workspace_id, message.message_id]): (
                    transcript.messages,
                    position,
                )
                for transcript in dataset.transcripts
                for position, message in enumerate(transcript.messages)
            }
        )

    def around(self, workspace: str, document_id: str) -> list[dict[str, Any]]:
        """The message with those around it, as a page shows them."""
        messages, position = self.found[workspace, document_id]
        first = max(0, position - AROUND)
        return [
            _shown(message, is_judged=first + offset == position)
            for offset, message in enumerate(messages[first : position + AROUND + 1])
        ]

    def words(self, workspace: str, document_id: str) -> str:
        """The message with those around it as one text, the one that is judged marked."""
        lines = []
        for one in self.around(workspace, document_id):
            mark = ">>> " if one["is_judged"] else ""
            lines.append(f"{mark}[{one['who']}] {one['text']}")
        return "\n".join(lines)


class JudgingSession:
    """One judge's way through a pool. What is judged is on disk before the next is shown."""

    def __init__(
        self, pool: pl.DataFrame, dataset: Dataset, file: JudgementFile, judge: str, now: Callable[[], str]
    ) -> None:
        """Begin, or go on where this judge stopped.

        Args:
            now: gives the instant of a judgement.
        """
        self._queries = {query.query_id: query for query in dataset.queries}
        self._pairs: list[tuple[str, str]] = list(pool.select("query_id", "document_id").iter_rows())
        self._places = Places.of(dataset)
        self._file, self.judge, self._now = file, judge, now

    def state(self) -> dict[str, Any]:
        """What a page shows: the next document with its query, and how far the judge is."""
        said = self._file.of(self.judge)
        waiting = [pair for pair in self._pairs if pair not in said]
        done = [said[pair] for pair in self._pairs if pair in said]
        tally = {grade: sum(one.relevance == relevance for one in done) for grade, relevance in GRADES.items()}
        return {
            "judge": self.judge,
            "done": len(done),
            "total": len(self._pairs),
            "tally": tally | {"skip": sum(one.state == "skipped" for one in done)},
            "can_undo": bool(done),
            "task": self._task(waiting[0], said) if waiting else None,
        }

    def say(self, query_id: str, document_id: str, grade: str) -> None:
        """Keep a judgement: a grade, or `skip`. What this judge has judged already stays as it is.

        Raises:
            ValueError: if it is of nothing in the pool, or no grade.
        """
        if (query_id, document_id) not in set(self._pairs):
            raise ValueError("no such document in the pool")
        if grade not in (*GRADES, "skip"):
            raise ValueError(f"grade must be one of: {', '.join(GRADES)}, skip")
        if (query_id, document_id) not in self._file.of(self.judge):
            state = "skipped" if grade == "skip" else "judged"
            self._add(Judgement(query_id, document_id, GRADES.get(grade), self.judge, "human", state, self._now()))  # type: ignore[arg-type]

    def undo(self) -> None:
        """Take back what was said last, whenever that was."""
        said = self._file.of(self.judge)
        mine = [pair for pair in said if pair in set(self._pairs)]
        if mine:
            self._add(Judgement(*mine[-1], None, self.judge, "human", "withdrawn", self._now()))

    def _add(self, judgement: Judgement) -> None:
        self._file.add([judgement])

    def _task(self, pair: tuple[str, str], said: dict[tuple[str, str], Judgement]) -> dict[str, Any]:
        query = self._queries[pair[0]]
        alike = [one for one in self._pairs if one[0] == pair[0]]
        return {
            "query_id": pair[0],
            "document_id": pair[1],
            "query": query.text,
            "category": query.category,
            "asked_at": format_instant(query.asked_at)[:16].replace("T", " "),
            "number": sum(one in said for one in alike) + 1,
            "of": len(alike),
            "messages": self._places.around(query.workspace_id, pair[1]),
        }


def _shown(message: Message, *, is_judged: bool) -> dict[str, Any]:
    words = words_of(message, author_prefix=False, kinds=PASSAGE_KINDS)
    most = _LONGEST if is_judged else _LONGEST_AROUND
    return {
        "who": message.author or message.role,
        "role": message.role,
        "at": "" if message.created_at is None else format_instant(message.created_at)[:16].replace("T", " "),
        "text": words if len(words) <= most else f"{words[:most]} … ({len(words) - most:,} characters more)",
        "is_judged": is_judged,
    }
