"""What contexts tell of what they leave out."""

from collections.abc import Collection

from lcm.records.context import Context


def check_left_out(context: Context, asked_for: Collection[str]) -> None:
    """Each of what was asked for is shown or has its reason, which names the budget only where that lacks room."""
    shown = {item.item_id for item in context.items}
    assert context.left_out.keys() == set(asked_for) - shown
    limit = context.notes.get("memory_tokens", context.budget_tokens)
    for told in context.left_out.values():
        if told.reason == "budget":
            assert context.tokens + told.tokens > limit
        if told.reason in ("budget", "share"):
            assert told.tokens > told.room_tokens or not told.room_tokens
        assert (told.reason == "behind") == bool(told.behind)
        assert not told.behind or context.left_out[told.behind].reason in ("budget", "share")
