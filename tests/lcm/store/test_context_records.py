"""What a context's items stand for: a list, of which no more is read than is looked at."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.context.assembly.lossless import Lossless
from lcm.protocols.context import ContextRequest
from lcm.records.conversation import Message
from lcm.records.summary import ContextEntry, Summary
from lcm.store.store import Store
from lcm.store.summaries import ContextRecords, item_ids, messages_in, summaries_in
from lcm.token_estimator import Utf16Units
from tests.lcm.compaction.contexts import NOW, conversation, message, window


def records(count: int) -> tuple[list[Message | Summary], ContextRecords[Message | Summary], list[int]]:
    """A list, the same as records, and which of them were read."""
    items: list[Message | Summary] = [
        Summary(f"s{place}", "c", "leaf", 0, "x", 1, NOW) if place % 3 == 2 else message(place, "x")
        for place in range(count)
    ]
    entries = [
        ContextEntry(place, "summary" if isinstance(item, Summary) else "message", item_ids([item])[0], 1, None)
        for place, item in enumerate(items)
    ]
    seen: list[int] = []

    def read(some: Sequence[ContextEntry]) -> list[Message | Summary]:
        seen.extend(entry.ordinal for entry in some)
        return [items[entry.ordinal] for entry in some]

    return items, ContextRecords(entries, read), seen


@given(st.integers(0, 300), st.integers(-310, 310), st.slices(300))
def test_records_are_a_list_of_which_each_is_read_once_and_none_for_its_id_or_kind(
    count: int, at: int, part: slice
) -> None:
    items, lazy, seen = records(count)
    if -count <= at < count:
        assert lazy[at] == items[at]
        assert len(seen) <= 128
    else:
        with pytest.raises(IndexError):
            lazy[at]
    assert lazy[part] == items[part]
    assert list(lazy) == items
    assert lazy == items
    assert (len(seen), len(lazy)) == (count, len(set(seen)))
    _, unread, seen = records(count)
    assert item_ids(unread) == item_ids(items)
    messages, summaries = messages_in(unread), summaries_in(unread)
    assert (len(messages), len(summaries), seen) == (len(messages_in(items)), len(summaries_in(items)), [])
    assert (list(messages), list(summaries)) == (list(messages_in(items)), list(summaries_in(items)))


def test_a_context_reads_what_it_shows_and_its_records_are_its_messages_and_summaries() -> None:
    words = [f"message {number} " + "x" * 80 for number in range(2000)]
    with conversation(words) as store:
        read: list[str] = []
        by_id = Store.messages_by_id
        lazy = store.context_records("c")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "lcm.store.summaries.messages_by_key",
                lambda connection, keys: read.extend(keys) or by_id(store, keys),
            )
            (context,) = Lossless(Utf16Units()).assemble(lazy, [ContextRequest(3000)])
        shown = {item.item_id for item in context.items}
        assert shown <= set(read)
        assert len(read) < len(shown) + 3 * 128
        assert context == Lossless(Utf16Units()).assemble(list(lazy), [ContextRequest(3000)])[0]
        context = window(store)
        first = context.entries[0]
        summary = Summary("s", "c", "leaf", 0, "x", 1, NOW, source_ids=(first.item_id,))
        context.replace(first.ordinal, first.ordinal, summary)
        assert list(store.context_records("c")) == [*store.summaries("c"), *store.messages("c")[1:]]
