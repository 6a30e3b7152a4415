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
from lcm.errors import LcmError
from lcm.writing.admission.amac import FEATURES
from pipelines import cli
from pipelines.cli import BAD_INPUT, _OncePerReason
from pipelines.config import building, command_line, composition, conf_folder
from pipelines.steps.interruption import INTERRUPTED, TERMINATED
from tests.pipelines.conftest import QUICK, Finished, Lcm

MISTAKES = {
    "a sweep without -m": (["evaluate", "sweep=fusion"], ["sweep=fusion", "-m sweep=fusion"]),
    "misspelt pipeline": (["evalute"], ["'evalute'", f"choose one of: {', '.join(cli.PIPELINES)}"]),
    "unknown option": (["evaluate", "--bogus"], ["'--bogus'", "lcm evaluate --help"]),
    "option without its value": (["evaluate", "--cfg"], ["--cfg", "expected one argument", "lcm evaluate --help"]),
    "misspelt choice": (["evaluate", "embedder=minlm"], ["embedder=minlm", "choose one of: hashing, minilm,"]),
    "no choice": (["evaluate", "arms=null"], ["arms=null", "choose one of: controls, none"]),
    "new entry of an empty map": (
        ["evaluate", "scopes.agent_access={ann:[global]}"],
        ["scopes.agent_access.ann", "with +scopes.agent_access.ann=VALUE"],
    ),
    "several mistakes, all told": (
        [
            "evaluate",
            "guidance=corrected",
            "guidance.user_stability=0",
            "deduplication=model",
            "ranking=lancedb_pro",
            "ranking.stages.time_decay.floor_ratio=1",
        ],
        ["guidance.user_stability=0 has no place", "time_decay.floor_ratio=1 has no effect", "asks a language model"],
    ),
    "several components that refuse": (
        ["evaluate", "decay=weibull", "decay.beta_core=0", "fusion.dense_weight=-1", "replay.distractors=-1"],
        ["decay.beta_core must be > 0", "fusion.dense_weight", "replay.distractors"],
    ),
    "number of a path that is not taken": (
        ["evaluate", "ranking=lancedb_pro", "ranking.mode=vector", "fusion.dense_weight=0.1"],
        ["fusion.dense_weight=0.1 has no place", "leave fusion out"],
    ),
    "no model to ask": (
        ["evaluate", "deduplication=model"],
        ["deduplication asks a language model", "language_model=openai_compatible"],
    ),
    "a misspelt choice of a list": (
        ["evaluate", "measures=[nothing]"],
        ["measures=nothing: no such choice", "choose one of: answers, "],
    ),
    "half-life of nothing": (
        ["evaluate", "decay=weibull", "decay.recency_half_life_days=0"],
        ["decay.recency_half_life_days", "must be > 0, got 0"],
    ),
    "weights of nothing": (
        ["evaluate", "admission=balanced", *(f"admission.weights.{name}=0" for name in FEATURES)],
        ["admission", "weights must not all be 0", "raise one"],
    ),
    "unknown stage": (
        ["evaluate", "ranking=lancedb_pro", "ranking.hybrid.orders.description=[fuse]"],
        ["order names no stage 'fuse'", "fusion"],
    ),
    "misspelt group": (["evaluate", "embeder=minilm"], ["embeder", "did you mean embedder?"]),
    "misspelt key": (
        ["evaluate", "fusion.dense_wieght=1"],
        ["fusion.dense_wieght", "did you mean fusion.dense_weight"],
    ),
    "misspelt key of another choice": (
        ["evaluate", "fusion=reciprocal_rank", "fusion.dense_wieght=1", "fusion.k=3"],
        ["fusion.dense_wieght", "did you mean fusion.dense_weight"],
    ),
    "key without its group": (["evaluate", "dense_weight=1"], ["dense_weight", "did you mean fusion.dense_weight?"]),
    "added key": (["evaluate", "+fusion.depth=1"], ["fusion.depth", "choose from: clamp, dense_weight,"]),
    "text for a number": (["evaluate", "fusion.dense_weight=abc"], ["fusion.dense_weight must be a number, got 'abc'"]),
    "null for a number": (["evaluate", "fusion.dense_weight=null"], ["fusion.dense_weight must be a number, got null"]),
    "not a number": (["evaluate", "fusion.dense_weight=nan"], ["fusion.dense_weight must be a number, got nan"]),
    "fraction for a count": (
        ["evaluate", "measures.latency.queries=2.5"],
        ["measures.latency.queries must be a whole number, got 2.5"],
    ),
    "true for a count": (["evaluate", "embedder.max_tokens=true"], ["embedder.max_tokens must be a whole number, got"]),
    "number for a switch": (["evaluate", "fusion.clamp=1"], ["fusion.clamp must be true or false, got 1"]),
    "text for a top-level switch": (["evaluate", "cache=maybe"], ["cache must be true or false, got 'maybe'"]),
    "one of a few words": (
        ["evaluate", "embedder.precision=int4"],
        ["embedder.precision must be one of: fp32, int8, got 'int4'"],
    ),
    "text for a list": (
        ["evaluate", "measures.retrieval.names=recall@5"],
        ["measures.retrieval.names must be a list, each text, got 'recall@5'"],
    ),
    "two wrong types": (
        ["evaluate", "fusion.dense_weight=abc", "ranking.stages.limit.n=1.5"],
        ["fusion.dense_weight must be a number", "ranking.stages.limit.n must be a whole number"],
    ),
    "out of range": (["evaluate", "fusion.dense_weight=-1"], ["fusion.dense_weight must be >= 0, got -1"]),
    "a stage out of range": (
        ["evaluate", "ranking.stages.limit.n=0"],
        ["ranking.stages.limit.n must be >= 1, got 0"],
    ),
    "number set where a choice is referred to": (
        ["evaluate", "ranking.stages.fusion.k=30"],
        ["ranking.stages.fusion.k", "configured as fusion", "fusion.dense_weight"],
    ),
    "a choice replaced by a bare map": (
        ["evaluate", "++ranking.stages.fusion.k=30"],
        ["ranking.stages.fusion must be a stage, got {'k': 30}", "fusion=reciprocal_rank"],
    ),
    "unknown measure": (
        ["evaluate", "measures.retrieval.names=[recal@5]"],
        ["measures.retrieval.names", "'recal@5'", "choose from: recall@k"],
    ),
    "override without a value": (["evaluate", "fusion.dense_weight"], ["'fusion.dense_weight'", "write KEY=VALUE"]),
    "many values without -m": (
        ["evaluate", "fusion=weighted_sum,reciprocal_rank"],
        ["fusion=weighted_sum,reciprocal_rank", "add -m"],
    ),
    "key taken out in a multirun": (
        ["evaluate", "-m", "~ranking.stages.limit"],
        ["~ranking.stages.limit", "ranking.stages.limit=null"],
    ),
    "setting of Hydra's that does nothing": (
        ["evaluate", "hydra.job.chdir=true"],
        ["hydra.job.chdir=true has no effect", "hydra.run.dir"],
    ),
    "folder of choices that is not there": (
        ["evaluate", "--config-dir", "nowhere"],
        ["--config-dir nowhere: no such folder"],
    ),
    "many runs of what makes one": (["tune", "-m", "study.seed=1,2"], ["`lcm tune` makes one run at a time"]),
    "empty tracking uri": (["evaluate", "tracking.uri="], ["tracking.uri must not be empty"]),
    "a folder that cannot be made": (
        ["evaluate", *QUICK, "hydra.run.dir=/dev/null/run"],
        ["hydra.run.dir=/dev/null/run", "name another"],
    ),
    "missing dataset": (
        ["evaluate", *QUICK, "dataset=locomo"],
        ["'locomo'", "LCM_DATASETS_DIR", "dataset.directory", "`lcm datasets`"],
    ),
    "a file where a dataset should be": (
        ["evaluate", *QUICK, "dataset.directory=/dev/null"],
        ["dataset.directory=/dev/null", "not a folder"],
    ),
    "no run to log": (["log"], ["runs/", "lcm evaluate"]),
    "not a run folder": (["log", "nowhere"], ["nowhere", "summary.json", "lcm evaluate"]),
}


def assert_refused(finished: Finished, words: Sequence[str]) -> None:
    """One line on stderr that holds the words, exit code 2, and nothing written."""
    assert finished.code == BAD_INPUT
    assert finished.stderr.count("\n") == 1, finished.stderr
    assert finished.stderr.startswith("lcm: ")
    for word in words:
        assert word in finished.stderr
    assert finished.stdout == ""
    assert [path for path in finished.place.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("arguments", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_one_line_with_key_value_and_remedy(lcm: Lcm, arguments: list[str], words: list[str]) -> None:
    plain = ["system=hybrid"] if re.search(r"fusion\.|dense_weight", " ".join(arguments)) else []
    assert_refused(lcm(*arguments[:1], *plain, *arguments[1:]), words)


@pytest.fixture
def sample_copy(tmp_path: Path) -> Path:
    return Path(copytree(bundled_directory(), tmp_path / "sample"))


def test_a_changed_file_is_told_with_both_digests(lcm: Lcm, sample_copy: Path) -> None:
    path = sample_copy / "queries.jsonl"
    pinned = sha256(path.read_bytes()).hexdigest()
    path.write_bytes(path.read_bytes() + b"\n")
    found = sha256(path.read_bytes()).hexdigest()
    assert_refused(lcm("evaluate", *QUICK, f"dataset.directory={sample_copy}"), [str(path), found, pinned])


def test_a_missing_file_is_named(lcm: Lcm, sample_copy: Path) -> None:
    (sample_copy / "queries.jsonl").unlink()
    assert_refused(lcm("evaluate", *QUICK, f"dataset.directory={sample_copy}"), [f"{sample_copy}/queries.jsonl"])


def test_a_corrupted_transcript_is_told_with_its_line(
    lcm: Lcm, sample_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = sample_copy / "transcripts" / "coding.jsonl"
    path.write_bytes(path.read_bytes()[:-40])  # the last line breaks off
    files = tuple(
        PinnedFile(file.path, sha256((sample_copy / file.path).read_bytes()).hexdigest()) for file in Sample.card.files
    )
    monkeypatch.setattr(Sample, "card", replace(Sample.card, files=files))
    lines = path.read_bytes().count(b"\n") + 1
    assert_refused(lcm("evaluate", *QUICK, f"dataset.directory={sample_copy}"), [str(path), str(lines)])


@pytest.mark.full
@pytest.mark.parametrize("override", ["~ranking.stages.limit", "ranking.stages.limit=null"])
def test_a_stage_can_be_taken_out(lcm: Lcm, override: str) -> None:
    ranking = building.build(command_line.read([*QUICK, override]).config, "ranking")
    assert ranking.stages.get("limit") is None
    assert lcm("evaluate", *QUICK, override).code == 0


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


def test_debug_shows_the_traceback() -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "evaluate", "system=hybrid", "fusion.dense_weight=-1", "--debug"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert finished.returncode == 2
    assert "Traceback" in finished.stderr
    assert "weighted_sum.py" in finished.stderr


def test_a_defect_is_told_from_bad_input(lcm: Lcm, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(Sample, "load", broken)
    finished = lcm("evaluate", *QUICK)
    assert finished.code == cli.INTERNAL_ERROR
    assert finished.stderr == "lcm: ZeroDivisionError: division by zero (a defect; --debug shows where)\n"


def test_help_names_every_pipeline(lcm: Lcm) -> None:
    for arguments in ([], ["--help"], ["-h"], ["help"]):  # however it is asked for
        finished = lcm(*arguments)
        assert finished.code == 0
        for name, what in cli.PIPELINES.items():
            assert re.search(rf"^  {name} +{what}$", finished.stdout, re.MULTILINE)


@pytest.mark.parametrize("pipeline", cli.PIPELINES)
def test_every_pipeline_has_help(lcm: Lcm, pipeline: str) -> None:
    finished = lcm(pipeline, "--help")
    assert finished.code == 0
    assert finished.stdout.startswith(f"lcm {pipeline} ")
    assert finished.stderr == ""


def test_help_lists_every_choice_of_the_groups_that_the_pipeline_has(lcm: Lcm) -> None:
    others = {"evaluate": {"space", "recall", "answerer", "kinds"}, "tune": {"recall", "answerer", "kinds"}}
    for pipeline, of_others in others.items():
        said = lcm(pipeline, "--help").stdout.replace("\n  ", " ")  # of choices that take several lines
        for group, choices in conf_folder.groups().items():
            assert (f"\n{group}: {', '.join(choices)}\n" in said) == (group not in of_others), group


def test_cfg_shows_the_configuration_and_runs_nothing(lcm: Lcm) -> None:
    finished = lcm("evaluate", "--cfg", "job", "fusion=reciprocal_rank")
    assert finished.code == 0
    assert "_target_: lcm.retrieval.fusion.reciprocal_rank.ReciprocalRank" in finished.stdout
    assert finished.summaries == []


def test_choices_are_found_in_folders_of_ones_own(lcm: Lcm, tmp_path: Path) -> None:
    for folder, weight in (("one", 0.25), ("two", 0.75)):
        (tmp_path / folder / "fusion").mkdir(parents=True)
        choice = f"defaults: [weighted_sum, _self_]\ndense_weight: {weight}\n"
        (tmp_path / folder / "fusion" / f"of_{folder}.yaml").write_text(choice)
    both = (f"--config-dir={tmp_path}/one", f"hydra.searchpath=['file://{tmp_path}/two']", "--cfg=job")
    assert "dense_weight: 0.25" in lcm("evaluate", *both, "fusion=of_one").stdout
    assert "dense_weight: 0.75" in lcm("evaluate", *both, "fusion=of_two").stdout


def test_references_are_shown_as_written_or_worked_out(lcm: Lcm) -> None:
    written = lcm("evaluate", "--cfg", "job").stdout
    resolved = lcm("evaluate", "--cfg", "job", "--resolve").stdout
    assert "embedder: ${embedder}" in written
    assert "${" not in resolved


def test_version_is_that_of_the_installed_distribution(lcm: Lcm) -> None:
    assert lcm("--version").stdout == f"lcm {version('lcm-harness')}\n"


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
    assert (process.returncode, stdout, stderr) == (code, "", f"lcm: {told}\n")


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


def test_a_complete_run_is_not_overwritten(lcm: Lcm) -> None:
    first = lcm("evaluate", *QUICK, "hydra.run.dir=again")
    before = {path.name: path.read_bytes() for path in first.folder.iterdir()}
    second = lcm("evaluate", *QUICK, "hydra.run.dir=again", "fusion=reciprocal_rank")
    assert second.code == 2
    assert "holds a complete run: name another folder" in second.stderr
    assert {path.name: path.read_bytes() for path in first.folder.iterdir()} == before


def test_explained_errors_keep_their_cause() -> None:
    with pytest.raises(LcmError) as caught:
        building.build(composition.composed(["fusion.dense_weight=-1"]), "memory")
    assert caught.value.__cause__ is not None


@pytest.mark.full
def test_a_reader_that_leaves_does_not_stop_the_run(tmp_path: Path) -> None:
    command = f"{sys.executable} -m pipelines.cli evaluate {' '.join(QUICK)} | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, re.findall("lcm:|Traceback", done.stderr)) == (0, [])  # it may tell how far it is
    assert done.stdout.startswith("sample")


@pytest.mark.parametrize("group", ["arms", "tracking", "memory"])
def test_a_group_that_is_taken_out_is_named(lcm: Lcm, group: str) -> None:
    done = lcm("evaluate", f"~{group}")
    assert done.code == 2
    assert done.stderr.startswith(f"lcm: {group} is missing: ")


def test_a_warning_of_compaction_passes_once_for_each_reason() -> None:
    passes = _OncePerReason().filter

    def record(name: str, *arguments: str) -> logging.LogRecord:
        return logging.LogRecord(name, logging.WARNING, "", 0, "%s failed: %s", arguments, None)

    assert passes(record("lcm.compaction.progress", "one", "no model"))
    assert not passes(record("lcm.compaction.progress", "another", "no model"))
    assert passes(record("lcm.compaction.progress", "one", "too late"))
    assert all(passes(record("lcm.memory.memory", "one", "no model")) for _ in range(2))
