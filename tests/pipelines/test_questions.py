"""`lcm questions make`: a questions file from sessions alone, told as generated."""

from eval.dataset.sample import bundled_directory
from tests.pipelines.conftest import Lcm
from tests.support.read_questions import read_questions

SESSIONS = str(bundled_directory() / "transcripts")
FEW = ("kinds=[known_item,later_mention]", "kinds.known_item.n=5", "kinds.later_mention.n=4")


def test_questions_are_written_shown_and_the_same_again(lcm: Lcm) -> None:
    done = lcm("questions", "make", SESSIONS, "into=q.jsonl", *FEW)
    assert done.code == 0, done.stderr
    made = read_questions(done.place / "q.jsonl")
    assert [one.generated for one in made] == ["known_item"] * 5 + ["later_mention"] * 4
    assert all(one.asked_at is not None and one.evidence for one in made)
    assert "overlap" in done.stdout
    assert "9 generated questions: q.jsonl" in done.stdout
    for more in (["into=again.jsonl"], ["into=other.jsonl", "seed=1"], ["into=q.csv"], ["into=q.parquet"]):
        assert lcm("questions", "make", SESSIONS, *more, *FEW).code == 0
    assert read_questions(done.place / "q.csv") == read_questions(done.place / "q.parquet") == made
    first, again, other = ((done.place / f"{name}.jsonl").read_bytes() for name in ("q", "again", "other"))
    assert first == again != other
