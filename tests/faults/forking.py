"""Warm processes that fork a child for each request: a kill costs milliseconds."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Tell = Callable[[str], None]
"""Passes a line to the test, which hears it even if the child is killed afterwards."""
Ask = Callable[..., list[dict[str, Any]]]
"""Has a child work on each request, all at once: `status`, its exit code or signal, and `said`, the lines it told."""


def serve(run: Callable[[Mapping[str, Any], Tell], object]) -> None:
    """Fork a child for each request; a line of JSON on stdin lists those that work at once."""
    for line in sys.stdin:
        children = [_forked(run, asked) for asked in json.loads(line)]
        ended = []
        for child, ours in children:
            with os.fdopen(ours) as told:
                said = told.read().splitlines()
            ended.append({"status": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), "said": said})
        print(json.dumps(ended), flush=True)


def _forked(run: Callable[[Mapping[str, Any], Tell], object], asked: Mapping[str, Any]) -> tuple[int, int]:
    ours, theirs = os.pipe()
    child = os.fork()
    if child:
        os.close(theirs)
        return child, ours
    os.close(ours)
    code = 1
    try:
        run(asked, lambda text: os.write(theirs, f"{text}\n".encode()) and None)
        code = 0
    finally:
        os._exit(code)


@contextmanager
def warm(root: Path, module: str, **environment: str) -> Iterator[Ask]:
    """Start a program that serves; yields what asks it."""
    with subprocess.Popen(
        [sys.executable, "-m", module], cwd=root, env={**os.environ, **environment},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip

        def ask(*together: Mapping[str, Any]) -> list[dict[str, Any]]:
            process.stdin.write(json.dumps(together) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()
