"""Whatever id one command prints, every command takes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lcm.context.recall.expansion import distilled_text, named_item
from lcm.context.recall.reader import DescribedFile, DescribedMessage, DescribedSummary, Reader, described_text
from lcm.errors import GrantError, StoreError
from lcm.records.conversation import Message, Part
from lcm.store.store import Store
from tests.lcm.context.recall.dags import START, TOKENS, fold, holding, lent, recall, talk

LONG = "row of a table\n" * 4000
CALL = Part("tool", tool_name="write", tool_input=json.dumps({"path": "kettle.py", "content": LONG}))


@pytest.fixture
def store() -> Iterator[Store]:
    """A conversation of words, a long call without words, a message with a large file, words; the first two folded."""
    with Store() as made:
        talk(made, "talk", ["The kettle is blue."])
        more = [
            Message("wrote", "assistant", "", "s", START, parts=(CALL,)),
            holding("rows", "rows.txt", LONG, 100, "4000 rows"),
            Message("last", "user", "Thanks.", "s", START, parts=(Part("text", "Thanks."),)),
        ]
        made.append("talk", more, TOKENS)
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
        said = message_of(reader, named[one]).said
        assert (said.number, said.message_id) == (2, "wrote")
    with pytest.raises(StoreError, match="no 'msg#99' in the store"):
        reader.describe("msg#99")
    with store.reading() as connection:
        assert named_item(connection, "msg#x") is named_item(connection, "") is None


def message_of(reader: Reader, one: str, **how: Any) -> DescribedMessage:
    described = reader.describe(one, **how)
    assert isinstance(described, DescribedMessage)
    return described


def test_a_long_call_without_words_is_clipped_and_had_whole(store: Store) -> None:
    reader = recall().on(store)
    brief, whole = (message_of(reader, "msg#2", content=content) for content in (False, True))
    assert whole.said.text == f"[tool write] path: kettle.py\ncontent: {LONG}"
    assert brief.said.text.startswith("[tool write] path: kettle.py\ncontent: row of a table\nrow")
    assert brief.said.tokens <= 4000 < brief.tokens == whole.said.tokens
    told = described_text(brief)
    assert f"tok={brief.tokens}" in told
    assert told.endswith(f"of {brief.tokens:,} tokens left out]")
    assert message_of(reader, "msg#2", token_cap=1).said.text == f"[... {brief.tokens:,} tokens left out]"
    assert message_of(reader, "rows").file_ids == (ids(store)["file"],)


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
    reader, original = recall().on(store), recall(rules="original").on(store)
    assert [hit.number for hit in reader.grep("kettle.py", mode="full_text").messages] == [2]
    assert {hit.number for hit in reader.grep("table", mode="full_text").messages} == {2, 3}
    assert reader.grep(r"path: kettle\.py$").messages == ()
    assert [hit.number for hit in reader.grep(r"(?m)path: kettle\.py$").messages] == [2]
    assert original.grep("table", mode="full_text").messages == original.grep("row of").messages == ()


def test_a_lent_reader_takes_ids_within_its_grant_alone(store: Store) -> None:
    talk(store, "other", ["secret"])
    reader = lent(recall(), store)
    said = message_of(reader, "wrote", token_cap=100).said
    assert said.is_clipped
    assert reader.remaining_tokens == 4000 - said.tokens
    for outside in ("other:1", "msg#5", "msg#99"):
        with pytest.raises(GrantError, match=f"does not cover '{outside}'"):
            reader.describe(outside)
    assert reader.grep("other:1", mode="full_text").total == 0
