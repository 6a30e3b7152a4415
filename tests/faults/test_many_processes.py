"""Two and four processes at one thing at once: nothing is lost, doubled or mixed up, and nobody hears of a defect.

Beside these: sweeps (`tests/pipelines/test_sweep.py`), studies (`test_kill_study.py`), evaluations that share cache,
folder and database (`tests/pipelines/test_evaluate.py`), and live sessions (`tests/lcm/plugins/lossless_claw`).
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval.experiment.run_folder import write_summary
from lcm.store.store import Store
from tests.faults.written_files import COMPACT, LOG, SWEEP, TUNE, at, compacted, lcm, swept, tuned, write_talks

pytestmark = pytest.mark.full

_EMBED = """
from pathlib import Path
from lcm.retrieval.embedder.cache import CachedEmbedder
from lcm.retrieval.embedder.hashing import Hashing

texts = [f"text {i}" for i in range(600)]
with CachedEmbedder(Hashing(), Path("cache")) as embedder:
    assert (embedder.embed(texts, "document") == Hashing().embed(texts, "document")).all()
"""
_KEEP = """
from eval.cache.stage_cache import StageCache

cache = StageCache("cache")
for i in range(200):
    content = bytes([i]) * 5000
    assert cache.read("pools", str(i)) in (None, content)
    cache.write("pools", str(i), content)
    if (kept := cache.read_folder("checkpoints", str(i))) is not None:
        assert (kept / "a").read_bytes() == content
    with cache.written_folder("checkpoints", str(i)) as made:
        (made / "a").write_bytes(content)
"""
_STORE = """
import sys
from eval.experiment.run_folder import write_summary
from lcm.store.store import Store
from tests.lcm.store.contents import TOKENS, talk

with Store("memory.db") as store:
    for i in range(40):
        store.ingest(talk(3, f"{sys.argv[1]} {i}"), TOKENS)
"""
_LCM = "import sys; from pipelines import cli; sys.exit(cli.run(sys.argv[2:]))"


def at_once(root: Path, place: Path, n: int, program: str, *arguments: str) -> list[tuple[int, str]]:
    """Run n processes in a folder; returns how each ended, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(root), "LCM_CACHE_DIR": str(place / "cache")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(number), *arguments],
            cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for number in range(n)
    ]  # fmt: skip
    said = [process.communicate(timeout=600)[1] for process in started]
    return [(process.returncode, text) for process, text in zip(started, said, strict=True)]


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("program", [_EMBED, _KEEP], ids=["embedding cache", "stage cache"])
def test_a_cache_gives_each_what_it_would_alone(n: int, program: str, root: Path, tmp_path: Path) -> None:
    assert at_once(root, tmp_path, n, program) == [(0, "")] * n


@pytest.mark.parametrize("n", [2, 4])
def test_a_store_holds_what_each_has_written(n: int, root: Path, tmp_path: Path) -> None:
    assert at_once(root, tmp_path, n, _STORE) == [(0, "")] * n
    with Store(tmp_path / "memory.db") as store:
        assert set(store.conversations()["conversation_id"]) == {f"{k} {i}" for k in range(n) for i in range(40)}
        assert len(store.messages()) == n * 40 * 3


@pytest.mark.parametrize("n", [2, 4])
def test_a_batch_is_made_once_and_the_others_are_told(n: int, root: Path, tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for place in (alone, together):
        place.mkdir()
        write_talks(place)
    ended = at_once(root, together, n, _LCM, *COMPACT)
    assert any(code == 0 for code, _ in ended)
    for code, text in ended:
        assert code == 0 or (code == 2 and "another `lcm compact` is at work there" in text), text
    with at(alone):
        assert lcm(*COMPACT) == 0
        expected = compacted()
    with at(together):
        assert compacted() == expected


def test_a_sweep_is_made_once_and_a_study_together(root: Path, tmp_path: Path) -> None:
    alone, together = tmp_path / "alone", tmp_path / "together"
    for place in (alone, together):
        place.mkdir()
        write_talks(place)
        with at(place):
            assert lcm("questions", "make", "talks", "into=questions.jsonl") == 0
    ended = at_once(root, together, 4, _LCM, *SWEEP)
    assert any(code == 0 for code, _ in ended)
    for code, text in ended:
        assert code == 0 or (code == 2 and "another process is at work on this sweep" in text), text
    ended = at_once(root, together, 4, _LCM, *TUNE)
    assert [code for code, _ in ended] == [0] * 4, ended
    with at(alone):
        expected = swept(), tuned()
    with at(together):
        assert (swept(), tuned()) == expected


@pytest.mark.parametrize("n", [2, 4])
def test_a_run_is_logged_to_one_database_and_none_is_torn(n: int, root: Path, tmp_path: Path) -> None:
    for number in range(n):
        folder = tmp_path / "runs" / str(number)
        told = {"kind": "comparison", "name": f"of {number}", "commit": None, "params": {}, "tags": {}}
        write_summary(folder, {**told, "metrics": {"number": float(number)}})
    command = "import sys; from pipelines import cli; sys.exit(cli.run(['log', f'runs/{sys.argv[1]}', *sys.argv[2:]]))"
    assert [code for code, _ in at_once(root, tmp_path, n, command, *LOG[2:])] == [0] * n
    assert all((tmp_path / "runs" / str(number) / "mlflow.json").is_file() for number in range(n))
