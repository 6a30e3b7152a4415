"""What the command line does, from Python: results are objects, what is wrong is an exception, nothing is printed."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from eval.run import Run
from lcm.errors import LcmError
from pipelines import lcm_harness, library
from tests.support.looked_at import NO_CONTEXTS, QUICK

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LCM_CACHE_DIR", str(tmp_path / "cache"))


def test_the_door_gives_all_that_it_names() -> None:
    assert {getattr(lcm_harness, name).__name__ for name in lcm_harness.DOOR} == lcm_harness.DOOR.keys()
    assert set(dir(lcm_harness)) == lcm_harness.DOOR.keys()
    with pytest.raises(AttributeError, match="no attribute 'evalute'"):
        getattr(lcm_harness, "evalute")  # noqa: B009


def test_a_run_is_what_its_folder_holds_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    run = library.evaluate(*QUICK, NO_CONTEXTS)
    assert run.folder.is_dir()
    assert run.folder.is_absolute()
    assert repr(run) == f"Run({str(run.folder)!r})"
    again = Run.open(run.folder)
    row = again.table.row(by_predicate=(pl.col("measure") == "recall@10") & (pl.col("group") == "all"), named=True)
    assert row["value"] == run.summary["measures"]["recall@10"]["value"]
    assert f"{row['value']:.3f}<br><small" in run._repr_html_()
    assert {"system=hybrid", "embedder=hashing", NO_CONTEXTS} < set(run.overrides)
    assert capsys.readouterr().out == ""


def test_a_sweep_knows_its_points_and_a_comparison_takes_runs() -> None:
    sweep = library.sweep("fusion.dense_weight=0.2,0.4", *QUICK, NO_CONTEXTS)
    assert list(sweep.runs) == ["fusion.dense_weight=0.2", "fusion.dense_weight=0.4"]
    assert sweep.best.folder.parent == sweep.folder
    assert len(sweep.table) == 2
    assert "fusion.dense_weight=0.4" in sweep._repr_html_()
    found = library.compare(*sweep.runs.values(), "tracking=none", "report=false")
    assert len(found.table) > 1
    assert "recall@10" in found._repr_html_()


def test_a_memory_takes_in_and_gives_back(tmp_path: Path) -> None:
    with library.memory("system=hybrid", "embedder=hashing").open("workspace.db") as memory:
        assert memory.documents.is_empty()
    assert (tmp_path / "workspace.db").is_file()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fusion.dense_wieght=1",), "fusion.dense_wieght: no such key; did you mean fusion.dense_weight"),
        (("fusion.dense_weight=x", "embedder=hashing"), "fusion.dense_weight"),
        (("--cfg", "job"), "makes nothing"),
        (("fusion.dense_weight=[",), "fusion.dense_weight"),
    ],
)
def test_what_is_wrong_is_an_exception_of_one_line(arguments: tuple[str, ...], told: str) -> None:
    with pytest.raises(LcmError, match=told.replace("[", r"\[")) as error:
        library.evaluate(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_a_script_without_a_guard_may_log_and_share_out(tmp_path: Path) -> None:
    """What is started beside it does not run it again."""
    settings = [one for one in (*QUICK, NO_CONTEXTS) if one != "tracking=none"]
    (tmp_path / "script.py").write_text(
        "from pipelines import library\n"
        "print('once')\n"
        f"sweep = library.sweep('fusion.dense_weight=0.2,0.4', 'executor=local', *{settings!r})\n"
        "print(len(sweep.runs))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "once\n2\n"), done.stderr
    assert (tmp_path / "mlflow.db").is_file()
