"""Damaged questions files: each is refused in one line that says where, and nothing is evaluated."""

from pathlib import Path

from eval.dataset.own import Own
from lcm.errors import LcmError
from tests.support.damaged_questions import ALSO_GOOD, GOOD, damaged_files, lines, write_sessions

MOST_CHARACTERS = 600


def test_a_whole_file_is_read_whatever_ends_its_lines(tmp_path: Path) -> None:
    sessions = str(write_sessions(tmp_path / "sessions"))
    whole = lines(GOOD, ALSO_GOOD)
    found = []
    for name, content in (("unix", whole), ("dos", whole.replace(b"\n", b"\r\n")), ("mark", b"\xef\xbb\xbf" + whole)):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        dataset = Own([sessions], questions=str(path)).load()
        found.append((dataset.queries, dataset.qrels.rows()))
    assert found[0] == found[1] == found[2]
    assert [message for _, message, _ in found[0][1]] == ["harbour:u3", "harbour:u5"]


def test_every_damaged_file_is_refused_in_one_line_that_says_where(tmp_path: Path) -> None:
    own = Own([str(write_sessions(tmp_path / "sessions"))])
    wrong, names = [], []
    for damaged in damaged_files():
        names.append(damaged.name)
        path = tmp_path / f"questions{damaged.ending}"
        path.write_bytes(damaged.content)
        told = None
        try:
            Own(own.paths, questions=str(path)).load()
        except LcmError as error:
            told = str(error)
        where = f"{path}:{damaged.line}: " if damaged.line else f"{path}:"
        if told is None or not told.startswith(where) or "\n" in told or len(told) > MOST_CHARACTERS:
            wrong.append((damaged.name, damaged.line, told and told[:300]))
    assert wrong == []
    assert len(names) >= 300
