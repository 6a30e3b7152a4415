"""Programs that follow sessions in one store take turns; none loses a message or sees a locked database."""

import subprocess
import sys
from pathlib import Path

import pytest

from lcm.store.store import Store
from tests.lcm.memory.session.session_files import chain, said, write

SPEAKER = """
import sys
from lcm.memory.session import live_message
from tests.golden.originals.session_turns import ingest_turn
from lcm.store.store import Store
from tests.lcm.memory.session.session_files import NOW, preparer

with Store(sys.argv[1]) as store:
    for number in range(25):
        said = live_message({"role": "user", "content": f"{sys.argv[2]} {number}"}, sys.argv[2], NOW)
        ingest_turn(store, [said], preparer(), NOW, sys.argv[2], "shared")
"""

BOOTSTRAPPER = """
import sys
from pathlib import Path
from lcm.memory.session_bootstrap import bootstrap
from lcm.store.store import Store
from tests.lcm.memory.session.session_files import NOW, preparer

with Store(sys.argv[1]) as store:
    for _ in range(10):
        bootstrap(store, Path(sys.argv[2]), preparer(), NOW, "s", "booted")
"""


@pytest.mark.slow
def test_processes_that_speak_in_one_conversation_or_bootstrap_one_session_lose_and_double_nothing(
    tmp_path: Path, root: Path
) -> None:
    path = tmp_path / "store.db"
    texts = [f"m{number}" for number in range(40)]
    file = write(tmp_path / "session.jsonl", chain(*texts))
    programs = [(SPEAKER, "one"), (SPEAKER, "two"), *[(BOOTSTRAPPER, str(file))] * 2]
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path), of], cwd=root, stderr=subprocess.PIPE, text=True)
        for program, of in programs
    ]
    assert [(process.communicate(timeout=60)[1], process.returncode) for process in running] == [("", 0)] * 4
    with Store(path) as store:
        words = said(store, "shared")
        for name in ("one", "two"):
            assert [text for text in words if text.startswith(name)] == [f"{name} {number}" for number in range(25)]
        assert said(store, "booted") == texts
