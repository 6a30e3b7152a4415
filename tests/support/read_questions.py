"""The questions of a file, as a test reads them."""

from pathlib import Path

from eval.questions.files import read_file, refuse
from eval.questions.question import Question


def read_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a file; DatasetError names its first line that is none."""
    read = read_file(path)
    refuse(read.problems)
    return read.questions
