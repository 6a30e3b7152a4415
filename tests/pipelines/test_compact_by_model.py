"""`lcm compact` with summaries by a model: what it is asked, and what happens where it fails or refuses."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lcm.store.store import Store
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, Loopback, serving
from tests.pipelines.conftest import Finished, Lcm
from tests.pipelines.test_compact import chat, compact, report, stores
from tests.support.local_server import said

LEAVES_OF_FOUR = ("compaction.fresh_tail_count=2", "compaction.leaf_chunk_tokens=230", "compaction.min_leaf_tokens=0")
"""A long user's message has 50 tokens, an assistant's 57 as it is stored: 4 are 214, 5 are 264."""


def told(finished: Finished) -> list[str]:
    """What was said beside the results, but that the talk has no times."""
    return [line for line in finished.stderr.splitlines() if "doubtful: " not in line]


def compact_by_model(lcm: Lcm, server: Loopback, *arguments: str) -> Finished:
    return compact(
        lcm,
        *arguments,
        *LEAVES_OF_FOUR,
        "summarizer=llm",
        "summarizer.workers=1",
        "language_model=openai_compatible",
        "language_model.mode=live",
        f"language_model.model.base_url={server.url}",
        "language_model.model.retries=0",
        "shards=1",
        compaction="lossless",
    )


def prompt_of(asked: Asked) -> str:
    return "\n".join(message["content"] for message in asked.body["messages"])


def summarised(asked: Sequence[Asked], name: str) -> list[Asked]:
    """The requests that show words of a conversation."""
    return [one for one in asked if f"{name} says" in prompt_of(one)]


def test_how_a_model_is_reached_does_not_ask_for_another_folder(lcm: Lcm, tmp_path: Path) -> None:
    path = str(chat(tmp_path / "a.jsonl", 1))  # too short for a summary: nobody is asked
    model = ("summarizer=llm", "language_model=openai_compatible")
    assert compact(lcm, path, *model, compaction="lossless").code == 0
    another = ("language_model.model.api_key_env=ANOTHER", "language_model.model.retries=0", "summarizer.workers=1")
    assert compact(lcm, path, *model, *another, compaction="lossless").code == 0
    assert "model.model" in compact(lcm, path, *model, "language_model.model.model=x", compaction="lossless").stderr


def test_where_the_model_fails_the_source_is_not_done_and_only_that_is_tried_again(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """12 messages, 10 before the tail of 2: leaves of 4, 4 and 2. The model is away for the second one of b."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-one")
    folder = str(chat(tmp_path / "in" / "a.jsonl", 12, units=200).parent)
    chat(tmp_path / "in" / "b.jsonl", 12, units=200)
    is_away = True

    def answer(asked: Asked) -> Answer:
        return Answer("away", 503) if is_away and "b says 0005" in prompt_of(asked) else said("noted")

    with serving(answer) as server:
        first = compact_by_model(lcm, server, folder)
        assert first.code == 2
        assert len(told(first)) == 1
        assert "not compacted to the end: 1 conversation: " in first.stderr
        rows = {row["conversation_id"]: row for row in report(first).iter_rows(named=True)}
        assert [rows[name]["summaries_by_depth"] for name in "ab"] == [[3], [1]]
        assert rows["a"]["reason"] == "compacted"
        assert "503" in rows["b"]["reason"]

        is_away = False
        server.asked.clear()
        again = compact_by_model(lcm, server, folder)
        assert (again.code, told(again)) == (0, [])
        assert len(server.asked) == len(summarised(server.asked, "b")) == 2
        assert not any("b says 0000" in prompt_of(one) for one in server.asked)
        rows = {row["conversation_id"]: row for row in report(again).iter_rows(named=True)}
        assert [(rows[name]["summaries_by_depth"], rows[name]["reason"]) for name in "ab"] == [([3], "compacted")] * 2

        server.asked.clear()
        assert compact_by_model(lcm, server, folder).code == 0
        assert not server.asked
    with Store(stores(again)[0]) as store:
        sources = [summary.source_ids for summary in store.summaries("b")]
    assert [name for names in sources for name in names] == [f"b:{n}" for n in range(1, 11)]


@pytest.mark.parametrize(("triggers", "batch"), [("at_end", 1), ("per_turn", 16)])
def test_where_credentials_are_refused_the_model_is_asked_once(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, triggers: str, batch: int
) -> None:
    """Conversations end one source after the other; turn by turn 16 sources share a batch of requests."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-old")
    names = [f"talk {number}" for number in range(20)]
    for name in names:
        chat(tmp_path / "in" / f"{name}.jsonl", 10, units=200)

    def answer(asked: Asked) -> Answer:
        return said("noted") if asked.headers["authorization"] == "Bearer sk-new" else Answer("who?", 401)

    arguments = (str(tmp_path / "in"), f"triggers={triggers}")
    with serving(answer) as server:
        refused = compact_by_model(lcm, server, *arguments)
        assert refused.code == 2
        assert len(told(refused)) == 1
        assert "20 conversations: " in refused.stderr
        assert len(server.asked) == batch
        assert report(refused)["messages"].is_between(1, 10).all()
        with Store(stores(refused)[0]) as store:
            assert not store.summary_frame().height
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-new")
        mended = compact_by_model(lcm, server, *arguments)
    assert (mended.code, told(mended)) == (0, [])
    rows = report(mended)
    assert rows.select("conversation_id", "messages", "reason").sort("conversation_id").rows() == sorted(
        (name, 10, "compacted") for name in names
    )


def test_what_the_summarizers_survived_is_told_and_adds_up_over_runs(
    lcm: Lcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model has no words for any of the 3 leaves of 12 messages."""
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-one")
    what = "llm gave no words: the beginning of the text stood in"
    folder = str(chat(tmp_path / "in" / "a.jsonl", 12, units=200).parent)
    with serving(lambda asked: said("")) as server:
        for number in (1, 2):
            finished = compact_by_model(lcm, server, folder)
            assert finished.code == 0, finished.stderr
            leaves = sum(report(finished)["summaries_by_depth"].explode())
            survived = finished.summary["incidents"]
            assert survived[what] >= leaves == 3 * number
            assert f"survived: {what}, {survived[what]} times" in finished.stdout
            chat(tmp_path / "in" / "b.jsonl", 12, units=200)
