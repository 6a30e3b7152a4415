"""A run on disk: which code made it, which configuration, and whether it is whole."""

import contextlib
import io
import json
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval import run as run_module
from eval.configuration import by_class, config_hash
from eval.dataset.dataset import QRELS_SCHEMA, Dataset
from eval.experiment.outcome import SERVED_SCHEMA, Outcome, write_run
from eval.experiment.workspace import RUN_SCHEMA
from eval.measures.means import MEANS_SCHEMA
from eval.measures.measure import VALUES_SCHEMA
from eval.measures.memory import CONVERSATION_SCHEMA
from eval.run import Run, commit, read_summary, read_table, write_frame, write_json, write_text
from eval.shape import sections
from lcm.errors import LcmError
from lcm.store.documents import DECISION_SCHEMA
from pipelines.config import composition
from pipelines.config.building import identity
from tests.support.run_folders import write_run_folder


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that this code seems to run from."""
    (tmp_path / "eval").mkdir()
    monkeypatch.setattr(run_module, "__file__", str(tmp_path / "eval" / "run.py"))
    yield tmp_path
    commit.cache_clear()


def found_commit() -> str | None:
    """That which another process would find."""
    commit.cache_clear()
    return commit()


def test_the_commit_is_that_of_the_checkout_and_there_is_none_without_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*arguments: str) -> str:
        person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        command = ["git", "-C", str(checkout), *person, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert found_commit() is None
    git("init", "--quiet")
    assert found_commit() is None, "before the first"
    (checkout / "file").write_text("one")
    git("add", "file")
    git("commit", "--quiet", "--message", "One")
    head = git("rev-parse", "HEAD")
    (checkout / "notes").write_text("not part of the code")
    assert found_commit() == head
    (checkout / "file").write_text("two")
    assert found_commit() == f"{head}+"
    monkeypatch.setenv("PATH", str(checkout))
    assert found_commit() is None, "without git"


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        (None, r"is not a complete run: it has no summary\.json; name a folder that"),
        ('{"measures": ', r"summary\.json is damaged .*; run `lcm evaluate` again"),
        ('{"a": 1}', r"summary\.json says neither its dataset nor its name"),
        ('{"dataset": "sample"}', r"summary\.json says neither its dataset nor its name"),
    ],
)
def test_a_folder_that_is_not_a_run_is_one_line(tmp_path: Path, summary: str | None, told: str) -> None:
    if summary is not None:
        (tmp_path / "summary.json").write_text(summary)
    with pytest.raises(LcmError, match=told) as caught:
        read_summary(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_hash_tells_values_apart_and_ignores_the_order_of_keys() -> None:
    assert config_hash({"a": 1, "b": {"c": 2, "d": 3}}) == config_hash({"b": {"d": 3, "c": 2}, "a": 1})
    others = [
        *({"a": 1, "b": [1, 2]}, {"a": 2, "b": [1, 2]}, {"a": 1, "b": [2, 1]}, {"a": "1", "b": [1, 2]}),
        *({"a": 1}, {"a": 1, "b": [1, 2], "c": None}),
    ]
    found = {config_hash(one) for one in others}
    assert len(found) == len(others)
    assert all(re.fullmatch("[0-9a-f]{16}", one) for one in found)


def hashed(*overrides: str) -> str:
    return config_hash(identity(composition.composed(["system=hybrid", *overrides])))


def test_only_what_may_change_a_number_is_part_of_the_identity() -> None:
    fusion = composition.composed(["system=hybrid"]).fusion
    nothing = ["tracking=none", "tracking.uri=http://elsewhere", "measures.latency.queries=0", "cache=false"]
    nothing += ["measures.latency.warmup_queries=1", f"fusion.dense_weight={fusion.dense_weight}"]
    assert {hashed(one) for one in nothing} == {hashed()}
    something = ["dataset=locomo", "embedder=hashing", "fusion.dense_weight=0.5", "ranking.stages.limit=null"]
    something += ["means.seed=1", "arms=none", "vector_index=hnsw"]
    assert len({hashed(), *(hashed(one) for one in something)}) == 1 + len(something)
    plain = identity(composition.composed([]))
    assert plain["memory"]["ranking"]["stages"]["fusion"] == plain["fusion"], "a reference is what it refers to"


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Write an empty run to the folder `tmp_path / "run"`."""

    def write(**changed: Any) -> dict[str, Any]:
        outcome = Outcome(
            system_run=pl.DataFrame(schema=RUN_SCHEMA),
            control_run=pl.DataFrame(schema=RUN_SCHEMA),
            served=pl.DataFrame([("system", 2, 6, 4, 1.0)], schema=SERVED_SCHEMA, orient="row"),
            documents=pl.DataFrame(),
            system_values=pl.DataFrame(schema=VALUES_SCHEMA),
            control_values=pl.DataFrame(schema=VALUES_SCHEMA),
            means=pl.DataFrame(changed.pop("means", []), schema=MEANS_SCHEMA, orient="row"),
            confidence=0.9,
            decisions=pl.DataFrame(schema=DECISION_SCHEMA),
            frames={"compression": pl.DataFrame(schema=CONVERSATION_SCHEMA)},
            sections={"compression": {"ratio": 1.5}},
            timing={"latency": {"total": {"p50_ms": 1.0}}},
            counts={"queries": 0},
            incidents={"a model was away": 2},
            flags=(),
            seconds={"replay": 1.0},
        )
        dataset = Dataset("toy", "none", "0" * 64, (), (), pl.DataFrame(schema=QRELS_SCHEMA), **changed)
        return write_run(tmp_path / "run", outcome, dataset, {"a": 1}, "a: 1\n", {"total": 2.0})

    return write


def test_nothing_is_held_of_a_buffer_that_could_not_be_closed(
    written: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a run are held until Python ends; of Python 3.13 each buffer with a view complains then."""
    buffers: list[io.BytesIO] = []

    class Buffer(io.BytesIO):
        def __init__(self) -> None:
            super().__init__()
            buffers.append(self)

    monkeypatch.setattr(run_module.io, "BytesIO", Buffer)
    written()
    assert buffers
    for buffer in buffers:
        buffer.close()  # a BufferError where a view of it is held


def test_what_is_written_is_what_is_read(written: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    summary = written(notes=("来週",), means=[("system", "all", "MRR", 0.5, 1, float("nan"), float("nan"))])
    assert read_summary(tmp_path / "run") == summary
    assert summary["interval"]["confidence"] == 0.9
    assert summary["measures"] == {"MRR": {"value": 0.5, "n": 1, "low": None, "high": None}}
    assert summary["compression"] == {"ratio": 1.5}
    assert summary["served"] == {"system": {"k": 2, "places": 6, "documents": 4, "top_10_share": 1.0}}
    assert "served" not in sections(summary)
    assert pl.read_parquet(tmp_path / "run" / "compression.parquet").schema == CONVERSATION_SCHEMA
    assert summary["timing"]["latency_ms"] == {"total": {"p50_ms": 1.0}}
    seconds = summary["timing"]["seconds"]
    assert (seconds["replay"], seconds["total"]) == (1.0, 2.0)
    assert seconds["ended_unix_s"] - seconds["began_unix_s"] == pytest.approx(2.0, abs=0.5)
    assert (summary["decisions"], summary["incidents"]) == ({}, {"a model was away": 2})
    assert "来週" in (tmp_path / "run" / "summary.json").read_text()


def test_control_arms_that_are_gone_are_told_and_older_folders_have_all_in_one(
    written: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    written()
    folder = tmp_path / "run"
    assert Run(folder).rankings.schema == pl.Schema(RUN_SCHEMA)
    (folder / "control_run.parquet").unlink()
    assert Run(folder).frame("run").is_empty()
    with pytest.raises(LcmError, match=r"control_run\.parquet is damaged"):
        Run(folder).rankings.clear()
    (folder / "SHA256SUMS").unlink()
    assert Run(folder).rankings.is_empty()


def test_what_is_not_as_it_was_written_is_told(written: Callable[..., dict[str, Any]], tmp_path: Path) -> None:
    """Other numbers in a file that can be read, and files of another run, are damage too."""
    written(means=[("system", "all", "MRR", 0.5, 1, float("nan"), float("nan"))])
    folder, trusted = tmp_path / "run", []
    reads = {
        "summary.json": lambda: read_summary(folder),
        "config.yaml": lambda: Run(folder).config,
        "per_query.parquet": lambda: Run(folder).directions,
        "queries.parquet": lambda: read_table(folder / "queries.parquet"),
    }
    for name, read in reads.items():
        whole = (folder / name).read_bytes()
        read()
        others = [b"", whole[: len(whole) // 2], whole[:-1], b"\0" * 16 + whole[16:], b"\xff\xfe" + whole, b"garbage"]
        others += [whole.replace(b"0.5", b"0.6"), whole.replace(b"2.0", b"3.0"), whole.replace(b"a: 1", b"a: 2")]
        for other in others:
            (folder / name).write_bytes(other)
            is_same = other == whole or (name == "summary.json" and other == whole[:-1])  # the end of the last line
            with contextlib.suppress(LcmError):
                read()
                trusted += [] if is_same else [(name, other)]
        (folder / name).write_bytes(whole)
    assert not trusted
    (folder / "SHA256SUMS").write_bytes(b"")
    with pytest.raises(LcmError, match=r"SHA256SUMS is damaged"):
        Run(folder).config.clear()


def test_a_damaged_table_of_a_folder_without_sums_is_refused_in_one_line_or_read(tmp_path: Path) -> None:
    rng, path = random.Random(20260112), tmp_path / "queries.parquet"
    rows = [(f"query {i}", [f"message {i}", f"message {i + 1}"], i / 3) for i in range(300)]
    write_frame(path, pl.DataFrame(rows, schema=["query_id", "evidence", "value"], orient="row"))
    whole, refused = path.read_bytes(), 0
    with pytest.raises(LcmError, match=r"is damaged \(it has no rank\); run `lcm evaluate` again$"):
        read_table(path, ["query_id", "rank"])
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 5)):
            place = rng.choice((rng.randrange(len(whole)), rng.randrange(len(whole) - 600, len(whole))))
            damaged[place] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            read_table(path, ["query_id", "evidence"]).rows()
        except LcmError as error:
            refused += 1
            assert re.match(rf"{path} is damaged \(.*\); run `lcm evaluate` again$", str(error)), error
    assert refused > 100


def test_a_file_is_there_whole_or_not_at_all_and_the_summary_comes_last(
    written: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    path = tmp_path / "file.json"
    write_text(path, "[1]")
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            write_text(path, "[1, 2]")
    assert path.read_text() == "[1]"
    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    with pytest.raises(OSError, match="no space left"):
        written()
    assert not (tmp_path / "run" / "summary.json").exists()


def test_settings_by_class_are_the_same_wherever_a_class_of_ours_stands() -> None:
    before = {"stages": [{"_target_": "lcm.retrieval.decay.weibull.Weibull", "k": 1}], "of_others": {"_target_": "a.B"}}
    now = {"stages": [{"_target_": "lcm.retrieval.decay.Weibull", "k": 1}], "of_others": {"_target_": "a.B"}}
    assert by_class(before) == by_class(now)
    assert by_class(now) == {"stages": [{"_target_": "Weibull", "k": 1}], "of_others": {"_target_": "a.B"}}


def test_a_run_tells_of_arms_and_contexts_and_reads_what_is_asked_for_alone(tmp_path: Path) -> None:
    folder = write_run_folder(tmp_path / "run", {"recall@10": [1.0, 0.5], "retained@800": [0.25, None]})
    arms = pl.read_parquet(folder / "per_query.parquet").with_columns(arm=pl.lit("bm25"))
    arms.write_parquet(folder / "control_per_query.parquet")
    (folder / "queries.parquet").unlink()
    run = Run.open(folder, "mine")
    assert run.measures == ["recall@10", "retained@800"]
    assert run.per_query["arm"].unique(maintain_order=True).to_list() == ["system", "bm25"]
    assert run.contexts.rows() == [("system", "q000", 800, 0.25), ("bm25", "q000", 800, 0.25)]
    assert (run.overrides, run.config, run.page) == ([], {}, None)
    arm = run.having("bm25", values=run.values.filter(measure="recall@10"))
    assert (arm.name, arm.measures, run.name) == ("bm25", ["recall@10"], "mine")
    with pytest.raises(LcmError, match=r"^mine has no queries\.parquet beside its summary: copy it there, or run `lcm"):
        run.queries.clear()


def test_a_complete_run_is_not_written_over(tmp_path: Path) -> None:
    run = Run.begin(tmp_path / "run")
    run.write("measures", pl.DataFrame({"value": [0.5]}))
    told = run.finish({"dataset": {"name": "toy", "digest": "a"}, "measures": {}}, "a: 1\n")
    assert Run.open(run.folder).summary == told
    assert (run.config, run.table["value"].to_list()) == ({"a": 1}, [0.5])
    with pytest.raises(LcmError, match="holds a complete run: name another folder, or remove that one first"):
        Run.begin(run.folder)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.just("a ° \n b"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"', max_size=2), inner, max_size=3),
)


@given(JSON_VALUES)
def test_json_in_lines_is_what_was_written(tmp_path_factory: pytest.TempPathFactory, content: Any) -> None:
    path = tmp_path_factory.mktemp("json") / "file.json"
    write_json(path, {"content": content})
    assert json.loads(path.read_text()) == {"content": content}
