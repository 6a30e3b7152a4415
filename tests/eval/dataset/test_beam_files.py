"""BEAM as it is published: folders, Parquet, truncated chats and plans give what the same records as lines give."""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from eval.dataset.beam import Beam
from eval.dataset.dataset import Dataset
from eval.dataset.files import identified
from lcm.errors import DatasetError
from tests.eval.dataset.refusals import misread
from tests.support.small_beam import NATIVE, RECORD, Json, write_folders, write_lines, write_parquet


def held(dataset: Dataset) -> tuple[Any, ...]:
    """What a dataset holds, whatever file it came from."""
    frames = (dataset.qrels.rows(), dataset.references.rows())
    return (
        sorted(dataset.transcripts, key=lambda t: t.workspace_id),
        sorted(dataset.queries, key=str),
        *map(sorted, frames),
    )


def planned(ids: Sequence[Sequence[int]]) -> list[Json]:
    """A chat of plans, each with one batch, as 10M has them."""
    chat = []
    for n, numbers in enumerate(ids, start=1):
        said = [
            {"role": "user", "id": number, "content": f"plan {n} says {number}"}
            | ({"time_anchor": f"May-0{n}-2024"} if place == 0 else {})
            for place, number in enumerate(numbers)
        ]
        chat.append({f"plan-{n}": [{"batch_number": 1, "turns": [said], "time_anchor": None}]})
    return chat


@pytest.fixture
def lines(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """What one conversation holds, read from a file of lines."""
    place = tmp_path_factory.mktemp("lines")
    write_lines(place)
    return Beam(str(place)).load()


def test_folders_and_parquet_give_what_lines_give(tmp_path: Path, lines: Dataset) -> None:
    """What a message lacks is null in Parquet, and names no day."""
    write_folders(tmp_path / "folders", [RECORD])
    path = write_parquet(tmp_path, "100K-00000-of-00001.parquet", [RECORD])
    (batches,) = pq.read_table(path)["chat"].to_pylist()
    assert {message["time_anchor"] for batch in batches for message in batch} > {None}
    for place in (tmp_path / "folders", tmp_path / "data"):
        found = Beam(str(place)).load()
        assert held(found) == held(lines)
        native = [m.envelope["native"] for m in found.transcripts[0].messages]
        assert native == [message for group in NATIVE for message in group]


def test_conversations_come_by_number_from_folders_and_from_all_parquet_files_of_a_size(tmp_path: Path) -> None:
    def records(size: str, *numbers: int) -> list[Json]:
        return [RECORD | {"conversation_id": f"beam-{size}-{n}"} for n in numbers]

    write_folders(tmp_path, records("100K", 10, 2, 1))
    (tmp_path / "chats" / "100K" / "notes").mkdir()
    assert Beam(str(tmp_path)).load().workspaces == ["beam-100K-1", "beam-100K-2", "beam-100K-10"]
    first = write_parquet(tmp_path, "10M-00000-of-00002.parquet", records("10M", 1, 2))
    write_parquet(tmp_path, "10M-00001-of-00002.parquet", records("10M", 3))
    assert Beam(str(tmp_path), size="10M").load().workspaces == ["beam-10M-1", "beam-10M-2", "beam-10M-3"]
    first.write_bytes(b"PAR1")
    with pytest.raises(DatasetError, match=r"10M-00000-of-00002\.parquet: is not Parquet"):
        Beam(str(tmp_path), size="10M").load()


def test_a_truncated_chat_is_read_where_asked_for_and_told(tmp_path: Path) -> None:
    shorter = [{**RECORD["chat"][0], "turns": [list(NATIVE[0])]}]
    write_folders(tmp_path, [RECORD, RECORD | {"conversation_id": "beam-100K-2"}], {"beam-100K-1": shorter})
    full, truncated = Beam(str(tmp_path)).load(), Beam(str(tmp_path), chats="truncated").load()
    assert [len(t.messages) for t in full.transcripts] == [6, 6]
    assert [len(t.messages) for t in truncated.transcripts] == [2, 6]
    assert truncated.protocol == "size=100K unit=message chats=truncated"
    assert full.digest != truncated.digest
    told = "1 chats are truncated, as the repository has them beside the full ones"
    assert told in truncated.notes
    assert told not in full.notes
    # Entries 77, 78, 77 name no message of either; 3, 4, 4, 3, 2 none of the shortened chat.
    assert "11 evidence entries name no message and are left out" in truncated.notes
    (tmp_path / "lines").mkdir()
    write_lines(tmp_path / "lines")
    with pytest.raises(DatasetError, match="holds no truncated chats, the repository's folders do"):
        Beam(str(tmp_path / "lines"), chats="truncated").load()


@pytest.mark.parametrize("ids", [[[0, 1, 2], [0, 1], [0, 1, 2, 3]], [[0, 1, 2], [3, 4], [5, 6, 7, 8]]])
def test_ids_that_begin_anew_in_each_plan_go_on(tmp_path: Path, ids: list[list[int]]) -> None:
    questions = {"event_ordering": [{"question": "When?", "source_chat_ids": [2, 3, 8, 9]}]}
    record = RECORD | {"conversation_id": "beam-10M-1", "chat": planned(ids), "probing_questions": questions}
    write_folders(tmp_path, [record])
    path = write_parquet(tmp_path, "10M-00000-of-00002.parquet", [record])
    (row,) = pq.read_table(path)["chat"].to_pylist()
    assert [sorted(plans) for plans in row] == [["plan-1", "plan-2", "plan-3"]] * 3
    assert [plans["plan-2"] is None for plans in row] == [True, False, True]
    for place in ("chats", "data"):
        dataset = Beam(str(tmp_path / place), size="10M").load()
        (transcript,) = dataset.transcripts
        words = {m.message_id: m.content for m in transcript.messages}
        said = [f"plan {n} says {ids[n - 1][place]}" for n, place in ((1, 2), (2, 0), (3, 3))]
        assert [words[message] for message in dataset.qrels["message_id"]] == said
        assert len(words) == 9
        assert len({m.session_id for m in transcript.messages}) == 3  # each plan has a batch 1 of its own
        assert "1 evidence entries name no message and are left out" in dataset.notes
        assert [m.envelope["native"]["id"] for m in transcript.messages] == [n for plan in ids for n in plan]


def test_only_some_conversations_are_taken_in_every_form(tmp_path: Path) -> None:
    records = [RECORD | {"conversation_id": f"beam-100K-{n}"} for n in (1, 2, 3)]
    write_folders(tmp_path / "folders", records)
    write_parquet(tmp_path, "100K-00000-of-00001.parquet", records)
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "folders" / "chats" / "100K" / "2" / "chat.json").write_text("damaged")
    for file in ("folders/chats/100K", "data/100K-00000-of-00001.parquet", "lines.jsonl"):
        dataset = Beam(str(tmp_path), file=file, only=["beam-100K-3", "beam-100K-1"]).load()
        assert dataset.workspaces == ["beam-100K-1", "beam-100K-3"]
        assert dataset.protocol == "size=100K unit=message only=beam-100K-1,beam-100K-3"
    with pytest.raises(DatasetError, match=r"holds the conversations of 100K 3 times: name one, dataset\.file="):
        Beam(str(tmp_path)).load()
    with pytest.raises(DatasetError, match=r"dataset\.file=other means .*, which is not there"):
        Beam(str(tmp_path), file="other").load()


def test_a_file_is_found_by_an_absolute_path_and_refused_under_another_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LCM_DATASETS_DIR", raising=False)
    write_folders(tmp_path, [RECORD])
    table = write_parquet(tmp_path, "100K-00000-of-00001.parquet", [RECORD])
    renamed = table.rename(table.with_name("renamed.parquet"))
    for path in (tmp_path / "chats" / "100K", renamed):
        assert Beam(file=str(path)).load().workspaces == ["beam-100K-1"]
    renamed.rename(table)
    for path in (tmp_path / "chats" / "100K", table):
        with pytest.raises(DatasetError, match="holds no conversations of 500K"):
            Beam(file=str(path), size="500K").load()
    assert Beam(str(tmp_path / "chats" / "100K")).load().workspaces == ["beam-100K-1"]


def test_a_conversation_is_read_when_it_is_its_turn(tmp_path: Path) -> None:
    """However large a size is, no more than one conversation of it is held as JSON."""
    write_folders(tmp_path, [RECORD | {"conversation_id": f"beam-100K-{n}"} for n in (1, 2)])
    _, (first, second) = Beam(str(tmp_path)).recorded()
    (tmp_path / "chats" / "100K" / "2" / "chat.json").write_text("{")
    assert first.read()[0].get("chat", list)
    with pytest.raises(DatasetError, match=r"100K/2/chat\.json: is not JSON"):
        second.read()


def test_a_known_release_is_named_and_unknown_files_among_it_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = RECORD | {"conversation_id": "beam-100K-2", "chat": RECORD["chat"][:1], "probing_questions": {}}
    write_folders(tmp_path, [RECORD, other])
    first, second = (tmp_path / "chats" / "100K" / n for n in "12")
    assert Beam(str(tmp_path)).load().notes[0] == (
        f"4 of 4 files are of no known release, taken as they are (the first is {first / 'chat.json'})"
    )
    pins = [identified(Beam.card, path).pin for path in sorted(tmp_path.rglob("*.json")) if path.parent != second]
    release = replace(Beam.card.releases[1], files=tuple(pins))
    monkeypatch.setattr(Beam, "card", replace(Beam.card, releases=(release,)))
    assert Beam(str(tmp_path)).load().notes[:2] == (
        f"the files are of release folders_100K: {release.title}",
        f"1 of 4 files are of no known release, taken as they are (the first is {second / 'chat.json'})",
    )
    assert Beam(str(tmp_path), pinned=True, only=["beam-100K-1"]).load().notes[0].startswith("the files are of release")
    with pytest.raises(DatasetError, match=r"2/chat\.json is not the pinned file"):
        Beam(str(tmp_path), pinned=True).load()


def change(key: str, value: object) -> Callable[[Json], None]:
    def changed(record: Json) -> None:
        record["chat"][0]["turns"][1][0][key] = value

    return changed


def drop(key: str) -> Callable[[Json], None]:
    return lambda record: record["chat"][0]["turns"][1][0].pop(key)


HOSTILE: dict[str, Callable[[Json], object]] = {
    "batch 1: turns[1][0]: 'content' is missing": drop("content"),
    "batch 1: turns[1][0]: 'content' must be text, got 3": change("content", 3),
    "batch 1: turns[1][0]: 'id' 1 stands twice in the conversation": change("id", 1),
    "'id' must be a whole number, got '2'": change("id", "2"),
    "'role' must be user or assistant, got 'tool'": change("role", "tool"),
    "'time_anchor' is missing": lambda r: r["chat"][0]["turns"][0][0].pop("time_anchor"),
    "must be a day as November-05-2023, got '2024-03-15'": change("time_anchor", "2024-03-15"),
    "batch 2: 'turns' is missing": lambda r: r["chat"][1].pop("turns"),
    "batch 2: 'turns[0]' must be a list, got 'a'": lambda r: r["chat"][1].update(turns=["a"]),
    "holds no message": lambda r: r["chat"].clear(),
    "'chat' must be a list, got {}": lambda r: r.update(chat={}),
    "abstention[0]: 'question' is missing": lambda r: r["probing_questions"]["abstention"][0].clear(),
    "'abstention' must be a list": lambda r: r["probing_questions"].update(abstention="x"),
    "'probing_questions' must be an object, got []": lambda r: r.update(probing_questions=[]),
}


def test_hostile_shapes_are_refused_in_one_line_with_file_and_key(tmp_path: Path) -> None:
    wrong = []
    for number, (words, damage) in enumerate(HOSTILE.items()):
        record = copy.deepcopy(RECORD)
        damage(record)
        folders = write_folders(tmp_path / f"{number}-folders", [record])
        wrong += misread(Beam(str(folders)).load, words, "100K/1/")
        lines = tmp_path / f"{number}-lines"
        lines.mkdir()
        write_lines(lines, chat=record["chat"], probing_questions=record["probing_questions"])
        wrong += misread(Beam(str(lines)).load, words, "beam_100K_dev.jsonl.gz: record 1")
    assert wrong == []


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    wrong = []

    def check(file: str, words: str) -> None:
        wrong.extend(misread(Beam(str(tmp_path), file=file).load, words))

    write_folders(tmp_path, [RECORD])
    questions = tmp_path / "chats" / "100K" / "1" / "probing_questions" / "probing_questions.json"
    questions.write_text("")
    check("chats/100K", "probing_questions.json: is not JSON")
    questions.unlink()
    check("chats/100K", "probing_questions.json is missing")
    (tmp_path / "empty.jsonl").write_text("")
    check("empty.jsonl", "holds no conversations of 100K")
    noise = [sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(3000)]
    whole = write_lines(tmp_path, topic=noise)
    whole.write_bytes(whole.read_bytes()[:-9])
    check(whole.name, "cannot be read")
    (tmp_path / "odd.jsonl").write_text(json.dumps(RECORD) + "\n[]\n")
    check("odd.jsonl", "odd.jsonl: record 2: must begin with a conversation_id")
    path = write_parquet(tmp_path, "100K-00000-of-00001.parquet", [RECORD])
    table = pq.read_table(path)
    pq.write_table(table.drop(["chat"]), path)
    check(f"data/{path.name}", "has no column 'chat'")
    odd = table.set_column(3, "probing_questions", [["{'a': open('/etc/passwd')}"]])
    pq.write_table(odd, path)
    check(f"data/{path.name}", "record 1: 'probing_questions' is no Python literal")
    assert wrong == []
