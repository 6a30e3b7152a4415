"""Finds questions by their words, over all runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval.run import read_table
from eval.serving.shelf import Shelved
from lcm.errors import LcmError

SHOWN = 100
_COLUMNS = ("query_id", "workspace_id", "category", "text")


@dataclass(frozen=True, slots=True)
class FoundQuestion:
    """A question of a dataset, and the runs that answered it."""

    query_id: str
    workspace_id: str
    category: str
    text: str
    dataset: str
    runs: tuple[Shelved, ...]


class QuestionSearch:
    """Over what runs were asked; the questions of a dataset are read once."""

    def __init__(self) -> None:
        self._questions: dict[str, list[tuple[str, ...]]] = {}
        """Digest of the dataset -> rows of `_COLUMNS`."""

    def found(self, words: str, runs: Sequence[Shelved]) -> tuple[list[FoundQuestion], int]:
        """The first `SHOWN` questions that hold every word, and how many there are."""
        wanted = words.lower().split()
        all_of = [one for one in self._all(runs) if all(word in one.text.lower() for word in wanted)]
        return all_of[:SHOWN], len(all_of)

    def _all(self, runs: Sequence[Shelved]) -> Iterator[FoundQuestion]:
        by_digest: dict[str, list[Shelved]] = {}
        for run in runs:
            by_digest.setdefault(str(run.summary["dataset"]["digest"]), []).append(run)
        for digest, asked in by_digest.items():
            for query_id, workspace_id, category, text in self._rows(digest, asked):
                yield FoundQuestion(query_id, workspace_id, category, text, asked[0].dataset, tuple(asked))

    def _rows(self, digest: str, runs: Sequence[Shelved]) -> list[tuple[str, ...]]:
        if digest not in self._questions:
            for run in runs:
                try:
                    table = read_table(run.path / "queries.parquet", _COLUMNS)
                except LcmError:  # the page of that run says so; another may be whole
                    continue
                self._questions[digest] = [tuple(cell or "" for cell in row) for row in table.iter_rows()]
                break
        return self._questions.get(digest, [])
