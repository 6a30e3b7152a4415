"""How facts stand in a context: each exactly once as retained, stale, mutated or missing."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.facts.ledger import Ledger, Standing, standings
from lcm.records.conversation import Message

LINES = (
    "The request timeout is 30 s.",
    "Never push to the main branch on Fridays.",
    "The notes are at https://example.org/notes/2026 and Tuva Lindqvist keeps them.",
    "Commit 3f9a2b1c7d holds the fix for src/app/main.py.",
    "I really prefer tea to coffee.",
    "The request timeout is 60 s now.",
)
MESSAGES = [Message(f"m{n}", "user", line, "s") for n, line in enumerate(LINES)]
LEDGER = Ledger.of(MESSAGES)
TIMEOUT = ("number", "request timeout time")


def counted(texts: list[str], shown: tuple[str, ...] = ()) -> Counter[Standing]:
    return Counter(standings(LEDGER, shown, texts).values())


def test_all_stands_where_every_message_does_or_is_quoted_and_nothing_in_nothing() -> None:
    everything = len(LEDGER.facts)
    assert counted([], tuple(message.message_id for message in MESSAGES)) == {"retained": everything}
    assert counted(["\n".join(LINES)]) == {"retained": everything}
    assert counted(["\n".join(f"[2026-01-01 09:00 UTC] user: {line}" for line in LINES)])["retained"] == everything
    assert counted([]) == {"missing": everything}


def test_an_outdated_value_alone_is_stale_and_words_without_the_value_retain_nothing() -> None:
    assert standings(LEDGER, ("m0",), [])[TIMEOUT] == "stale"
    assert standings(LEDGER, ("m0",), ["The request timeout is 60 s now."])[TIMEOUT] == "retained"
    for text in ("The request timeout was discussed.", "Something takes 60 s."):
        assert standings(LEDGER, (), [text])[TIMEOUT] == "missing"


MUTATED = [
    ("number", "The request timeout is 45 s."),
    ("rule", "You may push to the main branch on Fridays."),
    ("url", "The notes are at https://example.org/notes/2025."),
    ("identifier", "Commit 3f9a2b1c8d holds the fix."),
    ("path", "The fix is for src/apq/main.py."),
    ("name", "Then Tuva Lindquist keeps them."),
    ("preference", "I don't like tea or coffee."),
]


def test_a_value_that_it_never_had_is_mutated() -> None:
    for kind, text in MUTATED:
        found = standings(LEDGER, (), [text])
        assert [how for (of, _), how in found.items() if of == kind] == ["mutated"], kind


@given(st.sets(st.sampled_from(range(len(LINES)))), st.sets(st.sampled_from(range(len(LINES)))))
def test_more_messages_never_retain_less(some: set[int], more: set[int]) -> None:
    def retained(numbers: set[int]) -> set[tuple[str, str]]:
        found = standings(LEDGER, [f"m{n}" for n in sorted(numbers)], [])
        assert found.keys() == LEDGER.facts.keys()
        return {subject for subject, how in found.items() if how == "retained"}

    assert retained(some) <= retained(some | more)
