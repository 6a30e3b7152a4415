"""kill -9 of a command: its workers end within two seconds, and ask no model any more."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving
from tests.pipelines.test_compact import chat
from tests.support.local_server import said

WITHIN_S = 2.0
START_S = 120.0

MODEL = (
    *("language_model=openai_compatible", "language_model.mode=live", "language_model.model.retries=0"),
    "tracking=none",
)
COMPACT = (
    *("compact", "in", "into=out", "shards=2", "executor=local", *MODEL),
    *("compaction=lossless", "summarizer=llm", "summarizer.workers=1"),
    *("compaction.fresh_tail_count=2", "compaction.leaf_chunk_tokens=230", "compaction.min_leaf_tokens=0"),
)
SWEEP = (
    *("evaluate", "-m", "executor=local", "extraction=llm", "embedder=hashing"),
    *("system=hybrid", "fusion.dense_weight=0.3,0.5", "arms=none", "cache=false", "measures.latency.queries=0"),
    *MODEL,
)
RAY = tuple(one.replace("executor=local", "executor=ray") for one in COMPACT)


def slowly(_: Asked) -> Answer:
    time.sleep(0.05)
    return said("noted")


def started(place: Path, root: Path, *command: str, **settings: Any) -> "subprocess.Popen[str]":
    """Run a command over four long conversations."""
    for name in "abcd":
        chat(place / "in" / f"{name}.jsonl", 800, units=200)
    own = {"PYTHONPATH": str(root), "LCM_CACHE_DIR": str(place / "cache"), "OPENROUTER_API_KEY": "sk-test"}
    return subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", *command], cwd=place, env=os.environ | own, text=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **settings,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(COMPACT, id="compact"),
        pytest.param(SWEEP, id="sweep", marks=pytest.mark.full),
        pytest.param(RAY, id="ray", marks=pytest.mark.full),
    ],
)
def test_workers_of_a_killed_command_end_and_ask_nothing_more(
    command: tuple[str, ...], tmp_path: Path, root: Path
) -> None:
    with serving(slowly) as server:
        caller = started(tmp_path, root, *command, f"language_model.model.base_url={server.url}")
        try:
            wait_for_calls(server, caller)
            workers = [pid for pid in below(caller.pid) if command is not RAY or is_of_ray(pid)]
        finally:
            caller.kill()
        caller.wait()
        killed_at = time.monotonic()
        assert workers
        while left := [pid for pid in workers if is_alive(pid)]:
            assert time.monotonic() - killed_at < WITHIN_S, f"still at work: {left} of {workers}"
            time.sleep(0.05)
        calls = len(server.asked)
        time.sleep(0.5)
        assert len(server.asked) == calls


def wait_for_calls(server: Loopback, caller: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + START_S
    while len(server.asked) < 4:
        assert caller.poll() is None, caller.stderr and caller.stderr.read()
        assert time.monotonic() < until, "no model was asked"
        time.sleep(0.02)


def below(parent: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    children = [int(pid) for pid in told.stdout.split()]
    return [pid for child in children for pid in (child, *below(child)) if is_alive(pid)]


def is_of_ray(pid: int) -> bool:
    """Whether a process is one of Ray's workers, which it calls by their work, and none of its services."""
    return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::_Worker")


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has asked how it ended does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [(signal.SIGINT, 130, "interrupted"), pytest.param(signal.SIGTERM, 143, "terminated", marks=pytest.mark.full)],
)
def test_a_command_that_is_asked_to_end_as_its_workers_start_says_so_in_one_line(
    asked: signal.Signals, code: int, told: str, tmp_path: Path, root: Path
) -> None:
    caller = started(
        tmp_path, root, "compact", "in", "into=out", "shards=4", "executor=local", "embedder=hashing", "tracking=none",
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until = time.monotonic() + START_S
    # Two processes, and what keeps account of semaphores.
    while len(below(caller.pid)) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.5)
    workers = below(caller.pid)
    (os.killpg if asked == signal.SIGINT else os.kill)(caller.pid, asked)
    said = caller.communicate(timeout=60)[1]
    assert (caller.returncode, said) == (code, f"lcm: {told}\n")
    time.sleep(WITHIN_S)
    assert not [pid for pid in workers if is_alive(pid)]
