"""`lcm compact`: transcripts of any kind into stores, compacted, reported, and gone on with."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from filelock import FileLock

from eval.batch.sources import PLAN
from eval.configuration import config_hash
from eval.dataset.sample import bundled_directory
from lcm.derived import SUM, sealed
from lcm.records.conversation import Message, Transcript
from lcm.store.doctor import scan
from lcm.store.store import Store
from lcm.transcript.parquet import write_parquet
from lcm.transcript.reading import read_transcripts
from pipelines.cli import BAD_INPUT
from tests.conftest import ROOT
from tests.pipelines.conftest import Finished, Lcm
from tests.support.workspaces import minute

SAMPLE = bundled_directory() / "transcripts"


def compact(
    lcm: Lcm, *arguments: str, compaction: str = "pairs", tracking: str = "none", executor: str = "none"
) -> Finished:
    """In this process, unless the executor is another one."""
    return lcm(
        "compact",
        "into=out",
        *arguments,
        f"hydra.searchpath=[file://{ROOT / 'tests' / 'batch' / 'conf'}]",
        f"compaction={compaction}",
        f"tracking={tracking}",
        f"executor={executor}",
    )


def report(finished: Finished) -> pl.DataFrame:
    return pl.read_parquet(finished.place / "out" / "report.parquet")


def stores(finished: Finished) -> list[Path]:
    return sorted((finished.place / "out").glob("shard-*.db"))


def read_counts(finished: Finished) -> dict[str, int]:
    counts = json.loads((finished.place / "out" / "run" / "summary.json").read_text())["counts"]
    return {name: counts[name] for name in ("conversations", "messages")}


def chat(path: Path, messages: int, name: str = "", units: int = 0) -> Path:
    """Users and assistants in turn; every line as long as any other, and of as many units at least."""
    roles = ("user", "assistant")
    lines = [
        {"role": roles[i % 2], "content": f"{name or path.stem} says {i:04}".ljust(units, ".")} for i in range(messages)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_folder_becomes_stores_and_a_report_with_a_row_a_conversation(compacted: Finished) -> None:
    transcripts = {t.conversation_id: t for path in SAMPLE.glob("*.json*") for t in read_transcripts(path)}
    rows = {row["conversation_id"]: row for row in report(compacted).iter_rows(named=True)}
    assert {name: row["messages"] for name, row in rows.items()} == {
        name: len(transcript.messages) for name, transcript in transcripts.items()
    }
    found = []
    for path in stores(compacted):
        with Store(path) as store:
            for name in store.conversations()["conversation_id"]:
                found.append(name)
                ids = [message.message_id for message in store.messages(name)]
                assert ids == [message.message_id for message in transcripts[name].messages]
                assert store.events(name) == list(transcripts[name].events)
                depths = [summary.depth for summary in store.summaries(name)]
                assert rows[name]["summaries_by_depth"] == [depths.count(d) for d in range(max(depths, default=-1) + 1)]
                assert rows[name]["level_normal"] == sum(json.loads(rows[name]["methods"]).values()) == len(depths)
                assert rows[name]["tokens_after"] == sum(entry.tokens for entry in store.context(name))
                assert rows[name]["ratio"] == rows[name]["tokens_before"] / rows[name]["tokens_after"]
                assert (rows[name]["reason"] == "compacted") == bool(depths)
            assert not [check for check in scan(store._connection) if check.status == "fail"]
    assert len(stores(compacted)) == 2
    assert report(compacted)["level_normal"].sum() > 3
    assert sorted(found) == sorted(transcripts)
    assert " contexts compacted; the largest had " in compacted.stdout


def test_what_is_done_is_not_done_again_and_what_has_grown_is_gone_on_with(lcm: Lcm, tmp_path: Path) -> None:
    chat(tmp_path / "in" / "a.jsonl", 10)
    chat(tmp_path / "in" / "b.jsonl", 10)
    first = compact(lcm, str(tmp_path / "in"), "triggers=per_turn", "shards=2")
    shards = {path.name: path.read_bytes() for path in stores(first)}
    summary = (first.place / "out" / "run" / "summary.json").read_bytes()
    again = compact(lcm, str(tmp_path / "in"), "triggers=per_turn")
    assert again.code == 0
    assert {path.name: path.read_bytes() for path in stores(again)} == shards
    assert (first.place / "out" / "run" / "summary.json").read_bytes() == summary
    dealt = json.loads((first.place / "out" / PLAN).read_text())["files"]
    chat(tmp_path / "in" / "a.jsonl", 30)
    chat(tmp_path / "in" / "0 new.jsonl", 50)
    grown = compact(lcm, str(tmp_path / "in"), "triggers=per_turn")
    assert grown.code == 0, grown.stderr
    rows = report(grown).sort("conversation_id")
    assert rows.select("conversation_id", "messages").rows() == [("0 new", 50), ("a", 30), ("b", 10)]
    assert read_counts(grown) == {"conversations": 3, "messages": 90}
    assert json.loads((first.place / "out" / PLAN).read_text())["files"].items() >= dealt.items()
    whole = compact(lcm, str(tmp_path / "in" / "a.jsonl"), "triggers=per_turn")
    assert whole.code == 0


def test_two_processes_do_not_compact_into_one_folder(lcm: Lcm, tmp_path: Path) -> None:
    first = compact(lcm, str(chat(tmp_path / "in" / "a.jsonl", 10)))
    with FileLock(first.place / "out" / ".lock"):
        second = compact(lcm, str(tmp_path / "in"))
    assert (second.code, "another `lcm compact` is at work there" in second.stderr) == (BAD_INPUT, True), second.stderr


def test_after_each_turn_is_what_a_live_session_would_have_done(lcm: Lcm, tmp_path: Path) -> None:
    """10 messages are 5 turns; a leaf of the oldest 3 once 3 stand before the tail of 2: after turns 3 (6 messages),
    4 (3 + 2 = 5 raw) and 5 (2 + 2 = 4 raw: none); the two leaves then make one summary."""
    finished = compact(lcm, str(chat(tmp_path / "a.jsonl", 10)), "triggers=per_turn", "shards=1")
    with Store(stores(finished)[0]) as store:
        leaves = [summary for summary in store.summaries("a") if summary.kind == "leaf"]
        assert [leaf.source_ids for leaf in leaves] == [
            tuple(f"a:{n}" for n in range(1, 4)),
            tuple(f"a:{n}" for n in range(4, 7)),
        ]
        assert [summary.depth for summary in store.summaries("a")] == [0, 0, 1]
        assert [entry.depth for entry in store.context("a")] == [1, None, None, None, None]


def test_a_file_that_cannot_be_taken_in_stops_no_other(lcm: Lcm, tmp_path: Path) -> None:
    chat(tmp_path / "in" / "a.jsonl", 10)
    (tmp_path / "in" / "a copy.jsonl").write_text('{"role": "user", "content": "else", "conversation_id": "a"}\n')
    (tmp_path / "in" / "notes.txt").write_text("no transcript")
    (tmp_path / "in" / "torn.jsonl").write_text('{"role": "user", "content": "cut')
    finished = compact(lcm, str(tmp_path / "in"), "triggers=at_end", "shards=1")
    assert finished.code == 2
    assert "torn.jsonl" in finished.stderr
    assert f"not taken in: {tmp_path}/in/a copy.jsonl: conversation 'a': message 1, " in finished.stderr
    rows = report(finished)
    assert rows.filter(pl.col("conversation_id") == "a")["messages"][0] == 10
    assert rows.filter(pl.col("refused").is_not_null()).height >= 1


TOOL_ALONE = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]}


@pytest.mark.parametrize("content", [{"messages": []}, TOOL_ALONE], ids=["no message", "no words"])
def test_what_says_nothing_ends_as_it_does_when_it_is_ingested(lcm: Lcm, tmp_path: Path, content: Any) -> None:
    path = tmp_path / "silent.jsonl"
    path.write_text(json.dumps(content))
    finished = [lcm("ingest", str(path), "into=memory.db"), compact(lcm, str(path)), compact(lcm, str(path))]
    assert [one.code for one in finished] == [1, 1, 1]
    assert all("warning: nothing is said in what was read: no message has words" in one.stderr for one in finished)


def test_a_folder_without_transcripts_is_no_success(lcm: Lcm, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("# Notes")
    finished = compact(lcm, str(tmp_path / "notes"))
    assert finished.code == BAD_INPUT
    assert "lcm: nothing was taken in; lcm reads: chat" in finished.stderr


def test_a_parquet_file_is_split_between_shards_by_conversation(lcm: Lcm, tmp_path: Path) -> None:
    talks = [
        Transcript(name, tuple(Message(f"{name}:{i}", "user", f"{name} {i}", "s", minute(i)) for i in range(1, 8)))
        for name in (f"talk {n}" for n in range(40))
    ]
    write_parquet(talks, tmp_path / "talks.parquet")
    finished = compact(lcm, str(tmp_path / "*.parquet"), "triggers=per_turn", "shards=3")
    assert finished.code == 0, finished.stderr
    by_shard = []
    for path in stores(finished):
        with Store(path) as store:
            by_shard.append(store.conversations()["conversation_id"].to_list())
            for name in by_shard[-1]:
                assert [message.content for message in store.messages(name)] == [f"{name} {i}" for i in range(1, 8)]
    assert all(len(names) > 5 for names in by_shard)
    assert sorted(name for names in by_shard for name in names) == sorted(talk.conversation_id for talk in talks)
    assert report(finished)["messages"].to_list() == [7] * 40


ROUTED = ("summarizer=routed", "embedder=hashing", "compaction.min_turns=0")
TRUNCATE = "summarizer@summarizer.abstractive=truncate"


@pytest.mark.parametrize(
    ("summarizer", "method"),
    [
        (("summarizer=centroid", "embedder=hashing", "compaction.min_turns=0"), "extractive"),
        (ROUTED, "extractive"),  # whose T5 has no model
        ((*ROUTED, "summarizer.abstractive=null"), "extractive"),
        ((*ROUTED, TRUNCATE, "summarizer.threshold=0"), "truncate"),
    ],
)
def test_a_summarizer_that_needs_no_admission_compacts(
    lcm: Lcm, tmp_path: Path, summarizer: Sequence[str], method: str
) -> None:
    path = str(chat(tmp_path / "a.jsonl", 12, units=200))
    finished = compact(lcm, path, *summarizer, compaction="clustering")
    assert finished.code == 0, finished.stderr
    assert [list(json.loads(row)) for row in report(finished)["methods"]] == [[method]]


def test_another_configuration_or_number_of_shards_needs_another_folder(lcm: Lcm, tmp_path: Path) -> None:
    asked = (str(chat(tmp_path / "a.jsonl", 4)), "summarizer=truncate")
    assert compact(lcm, *asked, "summarizer.max_units=90", "shards=1", compaction="lossless").code == 0
    wrong = {
        ("summarizer.max_units=90", "shards=2"): "was made with 1",
        ("summarizer.max_units=80",): (
            "was made with another configuration (summarizer.max_units: 90 there, 80 here); name another folder"
        ),
        (
            *("summarizer.max_units=90", "compaction.budget_tokens=9000", "compaction.timezone=CET"),
            *("compaction.fresh_tail_count=1", "compaction.rules=original"),
        ): "; compaction.fresh_tail_count: 64 there, 1 here; and 1 more); name another folder",
    }
    for other, told in wrong.items():
        refused = compact(lcm, *asked, *other, compaction="lossless")
        assert (refused.code, told in refused.stderr) == (BAD_INPUT, True), refused.stderr


def test_a_folder_is_gone_on_with_though_a_module_became_part_of_another(lcm: Lcm, tmp_path: Path) -> None:
    path = str(chat(tmp_path / "a.jsonl", 4))
    finished = compact(lcm, path, "token_estimator=utf16_units")
    plan = finished.place / "out" / PLAN
    now, before = '"lcm.token_estimator.Utf16Units"', '"lcm.token_estimator.utf16_units.Utf16Units"'
    written = {name: value for name, value in json.loads(plan.read_text()).items() if name != SUM}
    was = json.loads(json.dumps(written).replace(now, before))
    assert was != written
    plan.write_text(json.dumps(sealed({**was, "identity": config_hash(was["settings"])})))
    again = compact(lcm, path, "token_estimator=utf16_units")
    assert (again.code, "Nothing is left to do" in again.stdout) == (0, True), again.stderr
    assert "made with another configuration" in compact(lcm, path, "token_estimator=utf8_bytes").stderr


def test_what_only_live_sessions_are_asked_does_not_ask_for_another_folder(lcm: Lcm, tmp_path: Path) -> None:
    path = str(chat(tmp_path / "a.jsonl", 4))
    assert compact(lcm, path).code == 0
    live = (
        "new_session_retain_depth=1", "bootstrap_max_tokens=9", "prune_heartbeats=true", "prune_heartbeat_turns=true",
        "import_cap_share=0.5", "import_cap_messages=7", "leaf_chunk_tokens=9",
    )  # fmt: skip
    assert compact(lcm, path, *(f"session.{setting}" for setting in live)).code == 0
    heard = compact(lcm, path, "session.large_file_threshold_tokens=9")
    assert "(session.large_file_threshold_tokens: null there, 9 here)" in heard.stderr


def test_large_files_stay_out_of_the_context_and_ignored_sessions_out_of_the_store(lcm: Lcm, tmp_path: Path) -> None:
    body = "The harbour has cranes. " * 100
    pasted = [{"role": "user", "content": f'Look: <file name="harbour.txt">{body}</file>'}]
    path = chat(tmp_path / "in" / "kept.jsonl", 6)
    path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in pasted))
    chat(tmp_path / "in" / "left out.jsonl", 6)
    finished = compact(
        lcm,
        str(tmp_path / "in"),
        "session.large_file_threshold_tokens=200",
        "session.ignore_patterns=[left*]",
        "shards=1",
    )
    assert finished.code == 0
    assert finished.stderr.count("kept.jsonl and 1 more: no message says when it was said") == 1
    assert finished.stderr.count("\n") == 1
    rows = report(finished)
    assert rows.select("conversation_id", "messages").rows() == [("kept", 7)]
    assert rows["tokens_before"][0] < len(body) // 4
    with Store(stores(finished)[0]) as store:
        assert store.conversations()["conversation_id"].to_list() == ["kept"]
        last = store.messages("kept")[-1]
    assert [file.name for file in last.files] == ["harbour.txt"]
    assert body.strip() not in last.content
    again = compact(lcm, str(tmp_path / "in"), *("session.large_file_threshold_tokens=200", "shards=1"))
    assert 'session.ignore_patterns: ["left*"] there, [] here' in again.stderr
