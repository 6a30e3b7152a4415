"""Describe: what a summary was made of and what that costs; a file whole, by its id."""

import pytest

from lcm.context.recall.describe import DescribedFile, DescribedSummary, file_description, summary_text
from lcm.errors import StoreError
from lcm.records.conversation import Message
from lcm.store.store import Store
from lcm.transcript.large_files import intercepted
from lcm.transcript.parts import decompose
from tests.lcm.context.recall.dags import START, TOKENS, fold, recall, talk


def test_a_subtree_goes_to_the_sources_or_as_the_original_to_what_was_derived() -> None:
    with Store() as store:
        talk(store, "talk", ["one", "two"])
        first, second = fold(store, "talk", 0, 1, "of one"), fold(store, "talk", 1, 1, "of two")
        top = fold(store, "talk", 0, 2, "of both")
        found = {}
        for rules in ("corrected", "original"):
            reader = recall(rules=rules).on(store)
            for one in (top, second):
                described = reader.describe(one)
                assert isinstance(described, DescribedSummary)
                places = [node.place for node in described.subtree]
                found[rules, one] = [(p.summary_id, p.path, len(p.next_ids)) for p in places]
        assert found["corrected", top] == [(top, "", 2), (first, "0000", 0), (second, "0001", 0)]
        assert found["corrected", second] == [(second, "", 0)]
        assert found["original", top] == [(top, "", 0)]
        assert found["original", second] == [(second, "", 1), (top, "0001", 0)]


def test_the_manifest_says_what_fits_the_budget() -> None:
    with Store() as store:
        talk(store, "talk", ["one"])
        leaf = fold(store, "talk", 0, 1, "a summary of 28 characters..")
        store._connection.execute("UPDATE summaries SET source_message_token_count = 90")
        described = recall().on(store).describe(leaf, token_cap=50)
        assert isinstance(described, DescribedSummary)
        assert "cost[s=7,m=97] budget[s=in,m=over]" in summary_text(described)


def test_a_large_file_is_had_whole_by_its_id() -> None:
    text = "row 1\nrow 2\n" * 500
    said = decompose({"role": "user", "content": f'Look: <file name="rows.txt">{text}</file>'})
    holder = Message("m", "user", said.content, "s", START, parts=said.parts, envelope=said.envelope)
    holder = intercepted(holder, 100, TOKENS, lambda *_: "1000 rows")
    with Store() as store:
        store.append("talk", [holder], TOKENS)
        (file,) = holder.files
        reader = recall().on(store)
        whole = reader.describe(file.file_id, content=True)
        assert isinstance(whole, DescribedFile)
        assert whole.text == text
        brief = reader.describe(file.file_id)
        assert isinstance(brief, DescribedFile)
        assert brief.text is None
        assert "1000 rows" in file_description(brief)
        with pytest.raises(StoreError, match="no 'file_none' in the store"):
            reader.describe("file_none")
        with pytest.raises(StoreError, match=f"no {file.file_id!r} in conversation 7"):
            reader.describe(file.file_id, conversation=7)
