"""Whatever id one command prints, every command takes."""

import json
from collections.abc import Iterator

import pytest

from lcm.context.recall.describe import DescribedFile, DescribedMessage, DescribedSummary, message_text
from lcm.context.recall.expansion import distilled_text
from lcm.context.recall.items import named_item
from lcm.context.recall.tools import Tools
from lcm.errors import GrantError, StoreError
from lcm.records.conversation import Message, Part
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted
from lcm.transcript.parts import decompose
from tests.lcm.context.recall.dags import START, TOKENS, fold, recall, talk

LONG = "row of a table\n" * 4000
CALL = Part("tool", tool_name="write", tool_input=json.dumps({"path": "kettle.py", "content": LONG}))


@pytest.fixture
def store() -> Iterator[Store]:
    """A conversation of words, a long call without words, a message with a large file, words; the first two folded."""
    said = decompose({"role": "user", "content": f'Look: <file name="rows.txt">{LONG}</file>'})
    holder = Message("rows", "user", said.content, "s", START, parts=said.parts, envelope=said.envelope)
    with Store() as made:
        talk(made, "talk", ["The kettle is blue."])
        made.append(
            "talk",
            [
                Message("wrote", "assistant", "", "s", START, parts=(CALL,)),
                intercepted(holder, 100, TOKENS, lambda *_: "4000 rows"),
                Message("last", "user", "Thanks.", "s", START, parts=(Part("text", "Thanks."),)),
            ],
            TOKENS,
        )
        fold(made, "talk", 0, 2, "A blue thing.")
        yield made


def ids(store: Store) -> dict[str, str]:
    (summary,), (file,) = store.summaries(), store.messages_by_id(["rows"])["rows"].files
    return {"summary": summary.summary_id, "file": file.file_id, "number": "msg#2", "recorded": "wrote"}


def test_every_id_is_described(store: Store) -> None:
    reader, named = recall().on(store), ids(store)
    assert isinstance(reader.describe(named["summary"]), DescribedSummary)
    assert isinstance(reader.describe(named["file"]), DescribedFile)
    for one in ("number", "recorded"):
        described = reader.describe(named[one])
        assert isinstance(described, DescribedMessage)
        assert (described.said.number, described.said.message_id) == (2, "wrote")
    with pytest.raises(StoreError, match="no 'msg#99' in the store"):
        reader.describe("msg#99")


def test_a_long_call_without_words_is_clipped_and_had_whole(store: Store) -> None:
    reader = recall().on(store)
    brief, whole = (reader.describe("msg#2", content=content) for content in (False, True))
    assert isinstance(brief, DescribedMessage)
    assert isinstance(whole, DescribedMessage)
    assert whole.said.text == f"[tool write] path: kettle.py\ncontent: {LONG}"
    assert brief.said.text.startswith("[tool write] path: kettle.py\ncontent: row of a table\nrow")
    assert brief.said.tokens <= 4000 < brief.tokens == whole.said.tokens
    told = message_text(brief)
    assert f"tok={brief.tokens}" in told
    assert told.endswith(f"of {brief.tokens:,} tokens left out]")
    least = reader.describe("msg#2", token_cap=1)
    assert isinstance(least, DescribedMessage)
    assert least.said.text == f"[... {brief.tokens:,} tokens left out]"
    holder = reader.describe("rows")
    assert isinstance(holder, DescribedMessage)
    assert holder.file_ids == (ids(store)["file"],)


def test_every_id_is_expanded_and_a_large_message_is_never_blank(store: Store) -> None:
    reader, named = recall().on(store), ids(store)
    found = reader.expand([named["summary"]], has_messages=True)
    assert found.is_truncated
    assert found.tokens <= 4000
    assert [said.is_clipped for said in found.roots[0].messages] == [False, True]
    (message,) = reader.expand(["msg#2"]).roots
    assert message.kind == "message"
    assert "[tool write] path: kettle.py" in distilled_text(reader.expand(["wrote"]), "corrected")
    (held,) = reader.expand([named["file"]], token_cap=10**6).roots
    assert [said.message_id for said in held.messages] == ["rows"]
    assert LONG in held.messages[0].text
    with pytest.raises(StoreError, match="no 'sum_none' in the store"):
        reader.expand([named["summary"], "sum_none"])


def test_every_id_is_found_and_what_it_names_comes_first(store: Store) -> None:
    reader, named = recall().on(store), ids(store)
    for one, number in {"number": 2, "recorded": 2, "file": 3}.items():
        assert reader.grep(named[one], mode="full_text").messages[0].number == number
    assert reader.grep(named["summary"], mode="full_text").summaries[0].summary_id == named["summary"]
    assert recall(rules="original").on(store).grep("wrote", mode="full_text").messages == ()


def test_calls_and_large_files_are_found_by_their_words_and_by_patterns(store: Store) -> None:
    reader = recall().on(store)
    assert [hit.number for hit in reader.grep("kettle.py", mode="full_text").messages] == [2]
    assert {hit.number for hit in reader.grep("table", mode="full_text").messages} == {2, 3}
    assert [hit.number for hit in reader.grep(r"path: kettle\.py$").messages] == []
    assert [hit.number for hit in reader.grep(r"(?m)path: kettle\.py$").messages] == [2]
    original = recall(rules="original").on(store)
    assert original.grep("table", mode="full_text").messages == ()
    assert original.grep("row of").messages == ()


def test_a_lent_reader_takes_ids_within_its_grant_alone(store: Store) -> None:
    configured = recall()
    talk(store, "other", ["secret"])
    _, lent = configured.grant_access(configured.on(store), [1], lambda: START)
    described = lent.describe("wrote", token_cap=100)
    assert isinstance(described, DescribedMessage)
    assert described.said.is_clipped
    assert lent.remaining_tokens == 4000 - described.said.tokens
    for outside in ("other:1", "msg#5", "msg#99"):
        with pytest.raises(GrantError, match=f"does not cover '{outside}'"):
            lent.describe(outside)
    assert lent.grep("other:1", mode="full_text").total == 0


def test_a_host_describes_a_message(store: Store) -> None:
    configured = recall()
    tools = Tools(configured, configured.on(store), lambda: START, "talk")
    reply = tools.call("lcm_describe", {"id": "msg#2", "tokenCap": 100})
    assert reply.details["recordedId"] == "wrote"
    assert "[tool write] path: kettle.py" in reply.text
    assert "tokens left out]" in reply.text


def test_an_unknown_id_names_nothing(store: Store) -> None:
    with store.reading() as connection:
        assert named_item(connection, "msg#x") is None
        assert named_item(connection, "") is None
