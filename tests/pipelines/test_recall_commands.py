"""`lcm grep`, `describe`, `expand` and `expand-query`: one store, read and never made."""

import json
import sqlite3
from pathlib import Path

import pytest

from lcm.records.conversation import Message, Part
from lcm.store.store import Store
from pipelines.cli import BAD_INPUT
from tests.lcm.context.recall.dags import START, TOKENS, fold, talk
from tests.pipelines.conftest import Lcm


@pytest.fixture
def memory(tmp_path: Path) -> tuple[str, str]:
    """A store and the id of its summary."""
    path = tmp_path / "memory.db"
    with Store(path) as store:
        talk(store, "talk", ["The kettle in the garden is [blue].", "来週の火曜日に東京で会議があります", "a=b"])
        return f"store={path}", fold(store, "talk", 0, 2, "A kettle, and a meeting in Tokyo.")


def test_words_are_found_with_their_ids(lcm: Lcm, memory: tuple[str, str]) -> None:
    store, summary_id = memory
    finished = lcm("grep", "kettle", store)
    assert finished.code == 0
    assert all(part in finished.stdout for part in ("msg#1", summary_id, "garden is [blue]", "2026-01-05 09:01 UTC"))
    found = json.loads(lcm("grep", "会議", store, "json=true", "scope=messages").stdout)
    assert [(hit["number"], hit["message_id"]) for hit in found["messages"]] == [(2, "talk:2")]
    assert lcm("grep", "zeppelin", store).stdout.strip() == "No matches found."
    assert "msg#3" in lcm("grep", "a=b", store, "mode=regex").stdout
    assert lcm("grep", "kettle", store, "before=2026-01-05T09:01:00Z").stdout.strip() == "No matches found."


def test_a_search_that_failed_and_was_survived_is_told(lcm: Lcm, memory: tuple[str, str]) -> None:
    store, _ = memory
    with sqlite3.connect(store.partition("=")[2]) as connection:
        connection.execute("DROP TABLE messages_fts")
    finished = lcm("grep", "kettle", store)
    assert "msg#1" in finished.stdout
    assert "survived: full_text_error, once" in finished.stderr


def test_an_expansion_gives_the_messages(lcm: Lcm, memory: tuple[str, str]) -> None:
    store, summary_id = memory
    assert "garden" in lcm("expand", summary_id, store).stdout
    summaries_alone = lcm("expand", summary_id, store, "messages=false").stdout
    assert "garden" not in summaries_alone
    assert "messages=true shows them" in summaries_alone
    assert "Messages: msg#1" in lcm("expand", summary_id, store, "recall=lossless_claw").stdout
    cut = json.loads(lcm("expand", summary_id, store, "messages=true", "token_cap=9", "json=true").stdout)
    assert (cut["tokens"], cut["is_truncated"]) == (9, True)


def test_a_summary_is_described(lcm: Lcm, memory: tuple[str, str]) -> None:
    store, summary_id = memory
    assert "A kettle, and a meeting in Tokyo." in lcm("describe", summary_id, store).stdout
    assert json.loads(lcm("describe", summary_id, store, "json=true").stdout)["messages"] == [1, 2]


def test_a_question_is_answered_with_what_it_rests_on(lcm: Lcm, memory: tuple[str, str]) -> None:
    store, summary_id = memory
    finished = lcm("expand-query", "What colour is the kettle?", store, f"ids={summary_id}")
    assert "The kettle in the garden is [blue]. [msg#1]" in finished.stdout
    assert f"cited: {summary_id}" in finished.stdout
    told = json.loads(lcm("expand-query", "Which kettle?", store, "query=garden", "json=true").stdout)
    assert told["cited_messages"] == [1]
    assert lcm("expand-query", "Why?", store, "query=kettle", "answerer=llm").code == BAD_INPUT


def test_the_environment_names_the_store(lcm: Lcm, memory: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LCM_DATABASE_PATH", raising=False)
    assert "store=FILE is missing" in lcm("grep", "kettle").stderr
    monkeypatch.setenv("LCM_DATABASE_PATH", memory[0].removeprefix("store="))
    assert "msg#1" in lcm("grep", "kettle").stdout


def test_whatever_id_a_command_prints_every_command_takes(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "calls.db"
    call = Part("tool", tool_name="write", tool_input='{"path": "kettle.py", "content": "' + "x " * 20_000 + '"}')
    with Store(path) as made:
        talk(made, "talk", ["Look at the kettle."])
        made.append("talk", [Message("wrote", "assistant", "", "s", START, parts=(call,))], TOKENS)
        summary_id = fold(made, "talk", 0, 2, "A blue thing.")
    store = f"store={path}"
    for named in ("msg#2", "wrote"):
        assert "[tool write] path: kettle.py" in lcm("grep", named, store).stdout
        described = lcm("describe", named, store).stdout
        assert "LCM_MESSAGE msg#2\nid wrote\n" in described
        assert "tokens left out]" in described
        assert lcm("describe", named, store, "content=true").stdout.rstrip().endswith("x x x x")
        assert "[tool write] path: kettle.py" in lcm("expand", named, store).stdout
        assert "msg#2" in lcm("expand-query", "Which kettle.py?", store, f"ids={named}").stdout
    assert "[tool write] path: kettle.py" in lcm("expand", summary_id, store).stdout
    for conversation in ("talk", "1"):
        assert "msg#2" in lcm("grep", "kettle.py", store, f"conversation={conversation}").stdout
        assert "LCM_SUMMARY" in lcm("describe", summary_id, store, f"conversation={conversation}").stdout
    assert "there is no conversation '7'" in lcm("grep", "x", store, "conversation=7").stderr


def test_an_agent_is_told_nothing_of_others(lcm: Lcm, tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    with Store(path) as store:
        made = {}
        for who in ("ada", "bo"):
            talk(store, f"agent:{who}:main", [f"zq{who} waters the garden", f"zq{who} waits"])
            made[who] = fold(store, f"agent:{who}:main", 0, 2, f"zq{who} in the garden.")
    asks = [
        *((command, one) for command in ("describe", "expand") for one in (*made.values(), "msg#1", "msg#3")),
        ("grep", "garden"), ("grep", "zq.*", "mode=regex"), ("grep", "garden", "conversation=2"),
        ("grep", "garden", "conversation=agent:bo:main"), ("expand-query", "garden?", "query=garden"),
        *(("expand-query", "garden?", f"ids={one}") for one in made.values()),
    ]  # fmt: skip
    answered = 0
    for ask in asks:
        finished = lcm(*ask, f"store={path}", "agent=ada")
        assert "zqbo" not in finished.stdout + finished.stderr, ask
        answered += "zqada" in finished.stdout
        whole = lcm(*ask, f"store={path}", "agent=system")
        assert "zqbo" in whole.stdout or made["bo"] not in ask
    assert answered >= 6
    for wrong in ("agent=", "agent= "):
        finished = lcm("grep", "garden", f"store={path}", wrong)
        assert finished.code == 2 and "must be an id" in finished.stderr
