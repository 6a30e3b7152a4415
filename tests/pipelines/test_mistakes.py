"""What a command cannot mean is told in one line with key, value and remedy, and leaves nothing behind."""

import json
import shlex
import shutil
import sqlite3
from pathlib import Path

import pytest

from lcm.store.store import Store
from lcm.writing.admission.amac import FEATURES
from pipelines import cli
from tests.conftest import ROOT
from tests.lcm.context.recall.dags import talk
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.run_folders import write_run_folder

WORDS = {
    "QUICK": QUICK,
    "MEMORY": ["external.command=[python3,memory.py]"],
    "ONE_WEIGHT": [
        *("space=fusion", "space.system=null", "space.fusion.choices=null", "space.fusion.floor_ratio=null"),
        *("space.fusion.floor_from=null", "space.fusion.k=null", "space.ranking=null"),
        "space.fusion.lexical_weight=null",
    ],
    "BY_COST": [
        "study.objectives=[{measure: recall@10, direction: maximize}, {measure: tokens@10, direction: minimize}]",
    ],
    "ZEROS": [f"admission.weights.{name}=0" for name in FEATURES],
}
"""What one word of the file stands for."""
LINES = (Path(__file__).parent / "mistakes.txt").read_text().splitlines()
TALKING = ("datasets get", "models get", "judge")
"""Commands that say what they know before they refuse."""
CASES = [line.split(" :: ") for line in LINES if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def place(evaluated: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs, sessions, questions and a store, to which no mistake adds anything."""
    place = tmp_path_factory.mktemp("mistakes")
    for name in ("good", "bad"):
        write_run_folder(place / name, {name: [0.5] * 40 for name in ("recall@10", "nDCG@10", "tokens@10")})
    shutil.copytree(evaluated.folder, place / "runs" / "first")
    shutil.copytree(ROOT / "docs" / "examples" / "own", place / "own")
    for folder in ("empty", "two/system"):
        (place / folder).mkdir(parents=True)
    for file, text in {
        "note.txt": "no run, no key, and long enough to be taken for a store " * 20,
        **dict.fromkeys(("two/system/a.yaml", "two/system/b.yaml", "there.parquet"), ""),
        "talk.jsonl": '{"role": "user", "content": "hello"}\n',
        "short.jsonl": '{"messages": [{"role": "user", "content": "Hi."}]}\n',
        "foreign.trec": "nobody 0 asked 1\n",
    }.items():
        (place / file).write_text(text)
    with Store(place / "memory.db") as store:
        talk(store, "talk", ["The kettle in the garden is blue.", "So it is."])
    with sqlite3.connect(place / "theirs.db") as theirs:
        theirs.execute("CREATE TABLE theirs (x)")
    return place


def files(place: Path) -> dict[Path, int]:
    """When each file was written."""
    return {path: path.stat().st_mtime_ns for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("line", "told"), CASES, ids=[line for line, _ in CASES])
def test_a_mistake_is_one_line_and_leaves_nothing(
    lcm: Lcm, place: Path, line: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    words = [given for word in shlex.split(line) for given in WORDS.get(word, [word])]
    before = files(place)
    finished = lcm(*words, place=place)
    assert finished.code == cli.BAD_INPUT
    if "--json" in words:
        told_json = {"error": finished.stderr.removeprefix("lcm: ").rstrip("\n"), "exit_code": cli.BAD_INPUT}
        assert json.loads(finished.stdout) == told_json
    else:
        assert finished.stdout == "" or line.startswith(TALKING)
    assert finished.stderr.startswith("lcm: ")
    assert finished.stderr.count("\n") == 1, finished.stderr
    parts = told.split(" & ")
    wrong = [part for part in parts if (part.removeprefix("not: ") in finished.stderr) == part.startswith("not: ")]
    assert wrong == [], finished.stderr
    assert files(place) == before
