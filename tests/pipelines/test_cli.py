"""What a person meets at the prompt: help, one-line errors, and a table that fits the terminal."""

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from shutil import copytree

import pytest

from eval.dataset.card import PinnedFile
from eval.dataset.sample import Sample, bundled_directory
from pipelines import cli
from pipelines.cli import BAD_INPUT, _OncePerReason
from pipelines.config import building, command_line, conf_folder
from pipelines.steps.interruption import INTERRUPTED, TERMINATED
from tests.conftest import ROOT
from tests.pipelines.conftest import QUICK, Finished, Lcm


def assert_refused(finished: Finished, words: Sequence[str]) -> None:
    """One line on stderr that holds the words, exit code 2, and nothing written."""
    assert finished.code == BAD_INPUT
    assert finished.stderr.count("\n") == 1, finished.stderr
    assert finished.stderr.startswith("lcm: ")
    for word in words:
        assert word in finished.stderr
    assert finished.stdout == ""
    assert [path for path in finished.place.rglob("*") if path.is_file()] == []


def test_a_corrupted_transcript_is_told_with_its_line(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_copy = copytree(bundled_directory(), tmp_path / "sample")
    path = sample_copy / "transcripts" / "coding.jsonl"
    path.write_bytes(path.read_bytes()[:-40])  # the last line breaks off
    files = tuple(
        PinnedFile(file.path, sha256((sample_copy / file.path).read_bytes()).hexdigest()) for file in Sample.card.files
    )
    monkeypatch.setattr(Sample, "card", replace(Sample.card, files=files))
    lines = path.read_bytes().count(b"\n") + 1
    assert_refused(lcm("evaluate", *QUICK, f"dataset.directory={sample_copy}"), [str(path), str(lines)])


@pytest.mark.parametrize("override", ["~ranking.stages.limit", "ranking.stages.limit=null"])
def test_a_stage_can_be_taken_out(override: str) -> None:
    ranking = building.build(command_line.read([*QUICK, override]).config, "ranking")
    assert ranking.stages.get("limit") is None


def test_options_and_overrides_come_in_any_order() -> None:
    command = command_line.command(["embedder=hashing", "-m", "fusion=weighted_sum,reciprocal_rank", "arms=none"])
    assert command.is_multirun
    assert command_line.multirun(command).points == [
        ("embedder=hashing", "fusion=weighted_sum", "arms=none"),
        ("embedder=hashing", "fusion=reciprocal_rank", "arms=none"),
    ]


def test_the_users_folder_is_found_where_no_shell_puts_it(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    shown = lcm("evaluate", "dataset=transcripts", "dataset.paths=[~/a,~/d]", "--cfg", "job").stdout
    assert all(path in shown for path in ("- /home/somebody/a\n", "- /home/somebody/d\n"))


def test_debug_shows_the_traceback(lcm: Lcm) -> None:
    finished = lcm("evaluate", "system=hybrid", "fusion.dense_weight=-1", "--debug")
    assert finished.code == 2
    assert "Traceback" in finished.stderr
    assert "fusion.py" in finished.stderr


def test_a_defect_is_told_from_bad_input(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Sample, "load", broken)
    finished = lcm("evaluate", *QUICK)
    assert finished.code == cli.INTERNAL_ERROR
    assert finished.stderr == "lcm: ZeroDivisionError: division by zero (a defect; --debug shows where)\n"


def test_help_names_every_pipeline_and_each_has_its_own(lcm: Lcm) -> None:
    for arguments in ([], ["--help"], ["-h"], ["help"]):  # however it is asked for
        said = lcm(*arguments).stdout
        assert all(re.search(rf"^  {name} +{what}$", said, re.MULTILINE) for name, what in cli.PIPELINES.items())
    for pipeline in cli.PIPELINES:
        finished = lcm(pipeline, "--help")
        assert (finished.code, finished.stderr) == (0, "")
        assert finished.stdout.startswith(f"lcm {pipeline} ")


def test_the_line_of_the_docs_lets_a_shell_complete_every_command(lcm: Lcm) -> None:
    (line,) = re.findall(r"^complete .*$", (ROOT / "docs" / "commands.md").read_text(), re.MULTILINE)
    script = f'lcm() {{ echo "$HELP"; }}\n{line}\neval "$(complete -p lcm | sed \'s/^complete/compgen/; s/ lcm$//\')"'
    completed = subprocess.run(
        ["bash", "-c", script],
        env=os.environ | {"HELP": lcm("--help").stdout},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.split() == list(cli.PIPELINES)


def test_help_lists_every_choice_of_the_groups_that_the_pipeline_has(lcm: Lcm) -> None:
    others = {"evaluate": {"space", "recall", "answerer", "kinds"}, "tune": {"recall", "answerer", "kinds"}}
    for pipeline, of_others in others.items():
        said = lcm(pipeline, "--help").stdout.replace("\n  ", " ")  # of choices that take several lines
        for group, choices in conf_folder.groups().items():
            assert (f"\n{group}: {', '.join(choices)}\n" in said) == (group not in of_others), group


def test_choices_are_found_in_folders_of_ones_own(lcm: Lcm, tmp_path: Path) -> None:
    for folder, weight in (("one", 0.25), ("two", 0.75)):
        (tmp_path / folder / "fusion").mkdir(parents=True)
        choice = f"defaults: [weighted_sum, _self_]\ndense_weight: {weight}\n"
        (tmp_path / folder / "fusion" / f"of_{folder}.yaml").write_text(choice)
    both = (f"--config-dir={tmp_path}/one", f"hydra.searchpath=['file://{tmp_path}/two']", "--cfg=job")
    assert "dense_weight: 0.25" in lcm("evaluate", *both, "fusion=of_one").stdout
    assert "dense_weight: 0.75" in lcm("evaluate", *both, "fusion=of_two").stdout


def test_a_configuration_is_shown_as_written_or_worked_out_and_nothing_runs(lcm: Lcm) -> None:
    written = lcm("evaluate", "--cfg", "job", "fusion=reciprocal_rank")
    assert "_target_: lcm.retrieval.fusion.ReciprocalRank" in written.stdout
    assert "embedder: ${embedder}" in written.stdout
    assert "${" not in lcm("evaluate", "--cfg", "job", "--resolve").stdout
    assert written.summaries == []


def test_version_is_that_of_the_installed_distribution(lcm: Lcm) -> None:
    assert lcm("--version").stdout == f"lcm {version('lcm-harness')}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [(signal.SIGINT, INTERRUPTED, "interrupted"), (signal.SIGTERM, TERMINATED, "terminated")],
)
def test_what_is_asked_to_end_says_so_in_one_line(asked: signal.Signals, code: int, told: str, tmp_path: Path) -> None:
    endless = ("means.resamples=100000000", f"hydra.run.dir={tmp_path}/run")
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "evaluate", *QUICK, *endless],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"LCM_CACHE_DIR": str(tmp_path / "cache")},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(tmp_path / "cache" / "embeddings")
    process.send_signal(asked)
    try:
        stdout, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    steps = ("loading the dataset: ", "replaying: ", "measuring: ")  # told on a busy machine
    said = [line for line in stderr.splitlines() if not line.startswith(steps)]
    assert (process.returncode, stdout, said) == (code, "", [f"lcm: {told}"])


def test_an_interruption_hidden_by_the_clearing_up_is_still_one(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra's `finally` may fail on what Ctrl-C left half done."""

    def interrupted(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise AttributeError("'NoneType' object has no attribute '_invalidate_flags_cache'")

    monkeypatch.setattr(Sample, "load", interrupted)
    finished = lcm("evaluate", *QUICK)
    assert (finished.code, finished.stderr) == (INTERRUPTED, "lcm: interrupted\n")


def wait_for(path: Path, timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while not path.exists():
        assert time.monotonic() < end, f"{path} was not made within {timeout_s} s"
        time.sleep(0.02)


def test_runs_of_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    wanted = tmp_path / "runs" / "12-00-00"
    made = [command_line.new_folder(wanted) for _ in range(3)]
    assert [folder.name for folder in made] == ["12-00-00", "12-00-00-2", "12-00-00-3"]


def test_a_warning_of_compaction_passes_once_for_each_reason() -> None:
    passes = _OncePerReason().filter

    def record(name: str, *arguments: str) -> logging.LogRecord:
        return logging.LogRecord(name, logging.WARNING, "", 0, "%s failed: %s", arguments, None)

    assert passes(record("lcm.compaction.work", "one", "no model"))
    assert not passes(record("lcm.compaction.work", "another", "no model"))
    assert passes(record("lcm.compaction.work", "one", "too late"))
    assert all(passes(record("lcm.memory.memory", "one", "no model")) for _ in range(2))
