"""What sentences state, and what has changed since the summary before."""

from lcm.compaction.summarizer.extractive import StatedFacts, stated_facts, with_changes
from lcm.compaction.summarizer.passages import read_source

BEFORE = "user: The port is 8080.\nuser: The limit is 5.\nuser: My favourite colour is blue."
NOW = "user: The port is 9090.\nuser: The limit is 5.\nuser: The depth is 3.\nuser: The depth is 4."


def stated(text: str, before: str = "") -> StatedFacts:
    return stated_facts(read_source(text).sentences, read_source(before).sentences)


def test_of_a_fact_the_last_value_alone_counts_and_is_new_known_or_changed() -> None:
    found = stated(NOW, BEFORE)
    assert found.rows.tolist() == [0, 1, 3]
    assert found.is_changed.tolist() == [True, False, False]
    assert found.is_known.tolist() == [False, True, False]


def test_names_rules_and_questions_are_counted_elsewhere() -> None:
    found = stated("user: Never push on Fridays.\nuser: We met Tuva Berg there.\nuser: Which port is free?")
    assert found.rows.size == found.ids.size == found.is_known.size == stated_facts((), ()).rows.size == 0


def test_a_change_is_told_with_the_value_before_once_unless_its_sentence_is_long() -> None:
    sentences = read_source(NOW).sentences
    changed = with_changes(sentences, read_source(BEFORE).sentences)
    assert [one.text for one in changed] == ["The port is 9090. (before: 8080)", *(one.text for one in sentences[1:])]
    assert with_changes(changed, read_source(BEFORE.replace("8080", "7070")).sentences) == changed
    assert with_changes(sentences, ()) == sentences
    now, before = (f"ann: We {how} to use {'really ' * 20}Postgres." for how in ("decided not", "decided"))
    (told,) = with_changes(read_source(now).sentences, read_source(before).sentences)
    assert "(before" not in told.text
