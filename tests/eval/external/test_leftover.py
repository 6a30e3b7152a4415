"""Nothing of a memory runs on once its workspace is done."""

import shlex
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from eval.external.stdio import Stdio
from lcm.consent import COMMANDS

DAEMON = """
import json, os, sys, time
for line in sys.stdin:
    beginning, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(told, str(os.getpid()).encode())
            for stream in (0, 1, 2):
                os.close(stream)
            time.sleep(60)
        os._exit(0)
    print(json.dumps({"id": json.loads(line)["id"], "name": os.read(beginning, 20).decode()}), flush=True)
"""
"""As a database that a memory starts for itself, and which outlives it."""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells what runs with which variables")
def test_a_daemon_that_a_memory_began_ends_with_its_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", DAEMON]
    monkeypatch.setenv(COMMANDS, shlex.join(command))
    with closing(Stdio(command).open()) as connection:
        daemon = Path("/proc") / connection.call("reset", {"workspace": "one"})["name"]
        assert daemon.exists()
    deadline = time.monotonic() + 5
    while daemon.exists() and "zombie" not in (daemon / "status").read_text():
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.05)
