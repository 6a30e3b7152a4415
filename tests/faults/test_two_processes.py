"""Two processes write one store at once: nothing is lost, and neither hears that the store is locked."""

import subprocess
import sys
from pathlib import Path

import pytest

from lcm.store.store import Store
from tests.faults.batch import failures
from tests.lcm.store.contents import TOKENS, talk

_INGEST = """
import sys
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, message, talk
from tests.support.workspaces import minute

with Store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(61, 161):
        store.append("talk", [message(n, created_at=minute(n))], TOKENS)
        store.ingest(talk(3, f"other {n}"), TOKENS)
"""
_COMPACT = """
import sys
from collections import Counter
from lcm.compaction.work import run
from lcm.compaction.window import StoredWindow
from lcm.store.store import Store
from tests.faults.batch import parts
from tests.support.workspaces import minute

compaction = parts().compaction
with Store(sys.argv[1]) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    window, made, survived = StoredWindow(store, "talk"), 0, Counter()
    for n in range(100):
        window.follow()
        work = compaction.after_turn(window, minute(1000 + n), incidents=survived)
        made += len(run(work, compaction.summarizer, incidents=survived).summary_ids)
    print(made)
"""


@pytest.mark.slow
def test_ingest_and_compaction_of_one_store_at_once_lose_nothing(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "memory.db"
    with Store(path) as store:
        store.ingest(talk(60), TOKENS)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for program in (_INGEST, _COMPACT)
    ]  # fmt: skip
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate(timeout=120) for process in both]
    for process, (_, errors) in zip(both, said, strict=True):
        assert process.returncode == 0, errors
        assert "locked" not in errors
    made = int(said[1][0])
    assert made >= 1
    with Store(path) as store:
        assert [message.message_id for message in store.messages("talk")] == [f"talk:{n}" for n in range(1, 161)]
        assert store.conversations().height == 1 + 100
        assert len(store.summaries("talk")) == made
    assert failures(path) == []
