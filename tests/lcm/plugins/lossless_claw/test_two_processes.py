"""Two programs that follow sessions in one store take turns; neither loses a message nor sees a locked database."""

import subprocess
import sys
from pathlib import Path

from lcm.store.store import Store
from tests.lcm.plugins.lossless_claw.session_files import chain, said, write

SPEAKER = """
import sys
from lcm.memory.session.preparer import live_message
from lcm.plugins.lossless_claw.turn import ingest_turn
from lcm.store.store import Store
from tests.lcm.plugins.lossless_claw.session_files import NOW, preparer

with Store(sys.argv[1]) as store:
    for number in range(25):
        said = live_message({"role": "user", "content": f"{sys.argv[2]} {number}"}, sys.argv[2], NOW)
        ingest_turn(store, [said], preparer(), NOW, sys.argv[2], "shared")
"""

BOOTSTRAPPER = """
import sys
from pathlib import Path
from lcm.plugins.lossless_claw.bootstrap import bootstrap
from lcm.store.store import Store
from tests.lcm.plugins.lossless_claw.session_files import NOW, preparer

with Store(sys.argv[1]) as store:
    for _ in range(10):
        bootstrap(store, Path(sys.argv[2]), preparer(), NOW, "s", "shared")
"""


def run_together(root: Path, *programs: tuple[str, ...]) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", *program], cwd=root, stderr=subprocess.PIPE, text=True)
        for program in programs
    ]
    outcomes = [(process.communicate(timeout=60)[1], process.returncode) for process in running]
    assert outcomes == [("", 0)] * len(programs)


def test_two_processes_that_speak_in_one_conversation_lose_nothing(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "store.db"
    run_together(root, (SPEAKER, str(path), "one"), (SPEAKER, str(path), "two"))
    with Store(path) as store:
        words = said(store, "shared")
        for name in ("one", "two"):
            assert [text for text in words if text.startswith(name)] == [f"{name} {number}" for number in range(25)]
        assert [message.content for message in store.messages()] == words


def test_two_processes_that_bootstrap_one_session_import_it_once(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "store.db"
    texts = [f"m{number}" for number in range(40)]
    file = write(tmp_path / "session.jsonl", chain(*texts))
    run_together(root, (BOOTSTRAPPER, str(path), str(file)), (BOOTSTRAPPER, str(path), str(file)))
    with Store(path) as store:
        assert said(store, "shared") == texts
