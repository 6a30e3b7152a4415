"""Describe: what a summary was made of and what that costs; a file whole, by its id."""

import pytest

from lcm.context.recall.reader import DescribedFile, DescribedSummary, described_text
from lcm.errors import StoreError
from lcm.store.store import Store
from tests.lcm.context.recall.dags import TOKENS, fold, holding, recall, talk


def test_a_subtree_goes_to_the_sources_or_as_the_original_to_what_was_derived(store: Store) -> None:
    talk(store, "talk", ["one", "two"])
    first, second = fold(store, "talk", 0, 1, "of one"), fold(store, "talk", 1, 1, "of two")
    top = fold(store, "talk", 0, 2, "of both")

    def subtree(rules: str, of: str) -> list[tuple[str, str, int]]:
        described = recall(rules=rules).on(store).describe(of)
        assert isinstance(described, DescribedSummary)
        return [(one.place.summary_id, one.place.path, len(one.place.next_ids)) for one in described.subtree]

    assert subtree("corrected", top) == [(top, "", 2), (first, "0000", 0), (second, "0001", 0)]
    assert subtree("corrected", second) == [(second, "", 0)]
    assert subtree("original", top) == [(top, "", 0)]
    assert subtree("original", second) == [(second, "", 1), (top, "0001", 0)]


def test_the_manifest_says_what_fits_the_budget(store: Store) -> None:
    talk(store, "talk", ["one"])
    leaf = fold(store, "talk", 0, 1, "a summary of 28 characters..")
    store._connection.execute("UPDATE summaries SET source_message_token_count = 90")
    described = recall().on(store).describe(leaf, token_cap=50)
    assert isinstance(described, DescribedSummary)
    assert "cost[s=7,m=97] budget[s=in,m=over]" in described_text(described)


def test_a_large_file_is_had_whole_by_its_id(store: Store) -> None:
    text = "row 1\nrow 2\n" * 500
    holder = holding("m", "rows.txt", text, 100, "1000 rows")
    store.append("talk", [holder], TOKENS)
    (file,) = holder.files
    reader = recall().on(store)
    whole, brief = (reader.describe(file.file_id, content=content) for content in (True, False))
    assert isinstance(whole, DescribedFile)
    assert isinstance(brief, DescribedFile)
    assert (whole.text, brief.text) == (text, None)
    assert "1000 rows" in described_text(brief)
    with pytest.raises(StoreError, match="no 'file_none' in the store"):
        reader.describe("file_none")
    with pytest.raises(StoreError, match=f"no {file.file_id!r} in conversation 7"):
        reader.describe(file.file_id, conversation=7)
