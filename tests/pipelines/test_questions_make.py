"""`lcm questions make`: a questions file from sessions alone, told as generated."""

import json
from pathlib import Path

import pytest

from eval.dataset.sample import bundled_directory
from eval.questions.files import read_questions
from tests.pipelines.conftest import Lcm, lcm  # noqa: F401 - a fixture

SESSIONS = str(bundled_directory() / "transcripts")
FEW = ("kinds=[known_item,later_mention]", "kinds.known_item.n=5", "kinds.later_mention.n=4")


def test_questions_are_written_shown_and_the_same_again(lcm: Lcm) -> None:  # noqa: F811
    done = lcm("questions", "make", SESSIONS, "into=q.jsonl", *FEW)
    assert done.code == 0, done.stderr
    made = read_questions(done.place / "q.jsonl")
    assert [one.generated for one in made] == ["known_item"] * 5 + ["later_mention"] * 4
    assert all(one.asked_at is not None and one.evidence for one in made)
    assert "overlap" in done.stdout
    assert "9 generated questions: q.jsonl" in done.stdout
    assert lcm("questions", "make", SESSIONS, "into=again.jsonl", *FEW).code == 0
    assert lcm("questions", "make", SESSIONS, "into=other.jsonl", "seed=1", *FEW).code == 0
    first, again, other = ((done.place / f"{name}.jsonl").read_bytes() for name in ("q", "again", "other"))
    assert first == again != other


def test_the_file_is_of_the_kind_that_its_name_ends_in(lcm: Lcm) -> None:  # noqa: F811
    done = lcm("questions", "make", SESSIONS, "into=q.jsonl", *FEW)
    for name in ("q.csv", "q.parquet"):
        assert lcm("questions", "make", SESSIONS, f"into={name}", *FEW).code == 0
        assert read_questions(done.place / name) == read_questions(done.place / "q.jsonl")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([SESSIONS], "into=FILE is missing"),
        ([SESSIONS, "into=q.txt"], "into=q.txt: a questions file ends in one of .jsonl, .csv, .parquet"),
        ([SESSIONS, "into=no/q.jsonl"], "into=no/q.jsonl: there is no folder no"),
        (["into=q.jsonl"], "name the sessions to make questions of"),
        ([SESSIONS, "into=q.jsonl", "kinds=[knownitem]"], "knownitem"),
        ([SESSIONS, "into=q.jsonl", "kinds.known_item.kept=0"], "kinds.known_item.kept must be in (0, 1], got 0"),
        ([SESSIONS, "into=q.jsonl", "seed=-1"], "seed must be a whole number >= 0, got -1"),
        ([SESSIONS, "into=q.jsonl", "workspace=each"], "workspace must be one of: all, file, folder, got 'each'"),
        ([SESSIONS, "into=q.jsonl", "kinds=[written]"], "no language model is configured"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line_and_nothing_is_written(
    lcm: Lcm,  # noqa: F811
    arguments: list[str],
    told: str,
) -> None:
    done = lcm("questions", "make", *arguments)
    assert (done.code, done.stderr.count("\n")) == (2, 1)
    assert told in done.stderr
    assert not list(done.place.glob("q*"))


def test_sessions_of_which_nothing_can_be_asked_are_told(lcm: Lcm, tmp_path: Path) -> None:  # noqa: F811
    session = tmp_path / "short.jsonl"
    session.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi."}]}) + "\n")
    done = lcm("questions", "make", str(session), "into=q.jsonl")
    assert done.code == 2
    assert "nothing can be asked of these sessions in this way" in done.stderr


def test_a_file_that_is_there_is_kept(lcm: Lcm) -> None:  # noqa: F811
    assert lcm("questions", "make", SESSIONS, "into=q.jsonl", *FEW).code == 0
    again = lcm("questions", "make", SESSIONS, "into=q.jsonl", *FEW)
    assert (again.code, "into=q.jsonl is there already" in again.stderr) == (2, True)
