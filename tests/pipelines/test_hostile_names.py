"""Names from data on their whole way: no command writes beside its folder, and no name takes another's place."""

import json
from pathlib import Path

import polars as pl
import pytest

from lcm.store.store import Store
from pipelines import datasets
from tests.pipelines.conftest import QUICK, Finished, Lcm
from tests.support.looked_at import NO_CONTEXTS

NAMES = (
    *("..", ".", "../canary", "../../canary", "/tmp/canary", "a/b", "a_b", "a b", "a", "A", "con", "nul.txt", "-rf"),
    *("~", "a\nb", "a\0b", "$HOME", "%2e%2e", "..\\b", "x" * 300, "é", "e\u0301", "'; drop table messages; --"),
)


@pytest.fixture
def sessions(tmp_path: Path) -> tuple[str, str]:
    """A folder with one session a name, and questions of such ids about them."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    questions = []
    for number, name in enumerate(NAMES):
        said = [("user", f"the berth of ship {number} is dock {number}"), ("assistant", f"dock {number}, noted")]
        records = [
            {"type": role, "uuid": f"{name}{role}", "sessionId": name, "timestamp": f"2026-01-05T09:{number:02}:00Z"}
            | {"message": {"role": role, "content": words}}
            for role, words in said
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        asked = {"question": f"Where is ship {number}?", "evidence": [f"berth of ship {number} is dock {number}"]}
        name = as_asked(name)
        questions.append({**asked, "question_id": name, "category": name})
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in questions))
    return str(folder), str(path)


def test_sessions_of_any_name_are_taken_in_and_compacted_beside_each_other(
    lcm: Lcm, sessions: tuple[str, str], tmp_path: Path
) -> None:
    before = set(tmp_path.rglob("*"))
    folder, _ = sessions
    assert lcm("ingest", folder, "into=memory.db").code == 0
    assert (
        lcm("compact", folder, "into=out", "shards=3", "embedder=hashing", "tracking=none", "executor=none").code == 0
    )
    stores = [tmp_path / "here" / "memory.db", *sorted((tmp_path / "here" / "out").glob("shard-*.db"))]
    held = []
    for path in stores:
        with Store(path) as store:
            held.append(set(store.conversations()["conversation_id"]))
            assert len(store.messages()) == 2 * len(held[-1])
    assert held[0] == set.union(*held[1:]) == set(NAMES)
    assert sum(map(len, held[1:])) == len(NAMES)
    assert made(tmp_path, before) <= {"here", "cache"}


def test_questions_of_any_id_are_evaluated_each(lcm: Lcm, sessions: tuple[str, str], tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    done = lcm("evaluate", *sessions, *QUICK, NO_CONTEXTS, "dataset.workspace=file", "hydra.run.dir=run")
    assert done.code == 0, done.stderr
    asked = set(map(as_asked, NAMES))
    queries = pl.read_parquet(done.place / "run" / "queries.parquet")
    assert set(queries["query_id"]) == set(queries["category"]) == asked
    assert set(pl.read_parquet(done.place / "run" / "per_query.parquet")["query_id"]) == asked
    assert made(tmp_path, before) <= {"here", "cache"}


def test_arms_of_any_name_are_files_of_their_own(
    lcm: Lcm, evaluated: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arms = ["../../canary", "/canary", "a", "A", "a/b", "con", "x" * 300]
    kept = datasets.runs_alike

    def renamed(folders: list[Path]) -> object:
        (run,) = kept(folders)
        ranked = pl.concat([run.ranked_messages.with_columns(arm=pl.lit(arm)) for arm in arms])
        return [run.having(run.name, ranked_messages=ranked)]

    monkeypatch.setattr(datasets, "runs_alike", renamed)
    before = set(tmp_path.rglob("*"))
    done = lcm("datasets", "write", str(evaluated.folder), "to=out")
    assert done.code == 0, done.stderr
    assert len(list((done.place / "out" / "runs").iterdir())) == len(arms)
    assert made(tmp_path, before) <= {"here", "cache"}
    assert [path.name for path in done.place.iterdir()] == ["out"]


def as_asked(name: str) -> str:
    """As a question may be called: what holds a NUL, or is too long, is refused with its line."""
    return name.replace("\0", " NUL ")[:200]


def made(place: Path, before: set[Path]) -> set[str]:
    return {path.relative_to(place).parts[0] for path in set(place.rglob("*")) - before}
