"""Own sessions and questions on the command line: checked, evaluated by the short form, compared, refused."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from eval.study.gain import PAIRED
from lcm.errors import LcmError
from pipelines.config import building, command_line
from pipelines.config.arguments import written_out
from tests.conftest import ROOT
from tests.pipelines.conftest import QUICK, Lcm

OWN = ROOT / "docs" / "examples" / "own"
SESSIONS, QUESTIONS = str(OWN / "sessions"), str(OWN / "questions.jsonl")


def test_check_shows_every_question_with_the_text_of_its_evidence(lcm: Lcm) -> None:
    done = lcm("questions", "check", QUESTIONS, SESSIONS)
    assert (done.code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "20 questions about 79 messages in 1 workspaces: 19 with evidence, 1 unanswerable, 0 wrong"
    for line in Path(QUESTIONS).read_text().splitlines():
        assert any(json.loads(line)["question"] in one for one in lines)
    assert any(
        "quotation: 57de4cf4-0144-4df7-8000-10f2f5557a7d:13 assistant: Set to max-age=300." in one for one in lines
    )
    assert sum(one.startswith("    like, 98 %: ") for one in lines) == 1
    assert sum(one.startswith("    line: ") for one in lines) == 1


def test_check_shows_what_is_wrong_with_its_line_and_the_nearest_messages(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    wrong = '{"question": "How many?", "evidence": ["Keep forty"]}\nnonsense\n'
    path.write_text(wrong + '{"question": "What age?", "evidence": ["Set to max-age=300"]}\n')
    done = lcm("questions", "check", str(path), SESSIONS)
    assert done.code == 2
    told = [line for line in done.stdout.splitlines() if line.startswith(("wrong", "    nearest"))]
    assert told[0] == f"wrong: {path}:1: evidence: 'Keep forty' stands in no message; quote words as they were said"
    assert "Keep thirty, and tell me on Signal" in told[1]
    assert told[-1].startswith(f"wrong: {path}:2: not JSON")
    assert lcm("questions", "check", str(path), SESSIONS, "similarity=2").code == 2
    path.write_text(wrong.partition("\n")[0])
    refused = lcm("evaluate", SESSIONS, str(path), "embedder=hashing", "tracking=none").stderr
    assert refused.endswith("quote words as they were said (`lcm questions check` shows the nearest messages)\n")


def test_check_tells_what_was_left_out_and_counts_as_evaluate_does(lcm: Lcm, tmp_path: Path) -> None:
    sessions = Path(shutil.copytree(SESSIONS, tmp_path / "sessions"))
    (sessions / "notes.txt").write_text("Buy rope.")
    (cut,) = (sessions / "pi").iterdir()
    cut.write_text(cut.read_text() + '{"role": "us\n')
    path = tmp_path / "questions.jsonl"
    wrong = {"question": "How many?", "evidence": ["Keep forty"], "difficulty": 3}
    path.write_text(f"{Path(QUESTIONS).read_text()}{json.dumps(wrong)}\nnonsense\n{{}}\n")
    done = lcm("questions", "check", str(path), str(sessions))
    notes = [line for line in done.stdout.splitlines() if line.startswith("note: ")]
    assert notes[0].startswith(f"note: put aside: {cut}:30: not JSON")
    assert notes[1].startswith(f"note: passed over: {sessions / 'notes.txt'}: ")
    assert notes[2:] == ["note: keys of questions.jsonl that say nothing here: difficulty"]
    assert done.stdout.splitlines()[-1].endswith("19 with evidence, 1 unanswerable, 3 wrong")
    assert "questions.jsonl:21: evidence" in (told := lcm("evaluate", str(sessions), str(path)).stderr)
    assert told.endswith("(and 2 more: `lcm questions check` shows them)\n")


def test_sessions_without_a_transcript_are_named_before_any_question_is_blamed(lcm: Lcm, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    told = [
        lcm(*arguments).stderr
        for arguments in (
            ["questions", "check", QUESTIONS, str(empty)],
            ["evaluate", str(empty), QUESTIONS],
            ["questions", "make", str(empty), "into=made.jsonl"],
        )
    ]
    assert told[0].startswith(f"lcm: {empty} holds no transcript that lcm reads; name recorded sessions")
    assert told == [told[0]] * 3
    (empty / "notes.txt").write_text("Buy rope.")
    done = lcm("questions", "check", QUESTIONS, str(empty))
    assert (done.code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"reads (passed over: {empty / 'notes.txt'}" in done.stderr


def test_words_are_written_out_as_overrides(tmp_path: Path) -> None:
    command = command_line.command([SESSIONS, "fusion.dense_weight=0.5", QUESTIONS])
    assert command.overrides[-4:] == (
        "dataset=own", f'dataset.paths=["{SESSIONS}"]', f'dataset.questions="{QUESTIONS}"', "fusion.dense_weight=0.5"
    )  # fmt: skip
    others = ["fusion.dense_weight", "~ranking.stages.limit", "decay=weibull", f"answerer.prompt={'long ' * 2000}"]
    assert written_out(others) == others
    odd = tmp_path / "a=b, [c] ${d}"
    odd.mkdir()
    named = written_out([str(odd), f"dataset.questions={QUESTIONS}"])
    assert building.build(command_line.read(named).config, "dataset").paths == [str(odd)]
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text('{"question": "Where?", "evid')
    assert f'dataset.questions="{damaged}"' in written_out([SESSIONS, str(damaged)])


def test_sessions_without_questions_are_measured_by_what_needs_none() -> None:
    assert written_out([SESSIONS, "measures=survival"]) == [
        "dataset=transcripts",
        f'dataset.paths=["{SESSIONS}"]',
        "measures=survival",
    ]
    assert "dataset=own" in written_out([SESSIONS, QUESTIONS, "measures=survival"])
    with pytest.raises(LcmError, match="measures=survival needs none"):
        written_out([SESSIONS])


def test_the_short_form_evaluates_and_a_sweep_pairs_its_points(lcm: Lcm) -> None:
    done = lcm("evaluate", SESSIONS, QUESTIONS, *QUICK, "-m", "fusion=weighted_sum,reciprocal_rank")
    assert done.code == 0, done.stderr
    assert "each point against the default, paired by query" in done.stdout
    (sweep,) = {summary.parent for summary in done.summaries if (summary.parent / PAIRED).is_file()}
    (row,) = pl.read_parquet(sweep / PAIRED).iter_rows(named=True)
    assert (row["measure"], row["n"]) == ("nDCG@10", 19)  # by recall@10 both are equal
    points = pl.read_parquet(sweep / "points.parquet")
    assert (row["baseline"], row["candidate"]) == tuple(pytest.approx(value) for value in points["nDCG@10"])
    assert row["low"] <= row["difference"] <= row["high"]
    assert 0 < row["p"] <= row["p_holm"] <= 1
    assert "## Each point against the default" in (sweep / "sweep.md").read_text()
