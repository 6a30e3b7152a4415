import itertools
import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lcm.compaction.summarizer.extractive import Extractive
from lcm.javascript import utf16_length
from lcm.protocols.models import TextKind, Vectors
from lcm.records.summary import SummaryRequest, SummaryResult
from lcm.retrieval.embedder.hashing import Hashing
from lcm.token_estimator import Utf16Units

TOKENS = Utf16Units()
PLAIN = Extractive(Hashing(), TOKENS, file_operations=False, footer=False)
WHOLE = Extractive(Hashing(), TOKENS)
TALK = """\
[2026-03-01 09:05 UTC]
The kettle in the office kitchen leaks water. It was bought in spring.

[2026-03-01 09:20 UTC]
We should buy a new kettle for the kitchen. I like tea. Nobody likes cold tea.

[2026-03-01 11:40 UTC]
I created docs/kettles.md with three offers. The cheapest kettle costs 30 euros.

[2026-03-01 11:50 UTC]
Then order the cheapest kettle on Monday. Alice pays from the kitchen budget."""


def summary(text: str, target_tokens: int, extractive: Extractive = PLAIN, **request: Any) -> SummaryResult:
    (result,) = extractive.summarize([SummaryRequest(text, target_tokens, **request)], incidents=Counter())
    return result


def words(count: int, *, start: int = 0) -> str:
    return " ".join(f"word{i}" for i in range(start, start + count))


LINES = st.lists(
    st.sampled_from(
        [
            "[2026-03-01 09:05 UTC]", "[2026-03-01 09:05 UTC - 2026-03-01 10:00 UTC]", "user: a kettle leaks. Buy one!",
            "assistant: I created src/a.py now. Done.", "", "水壺漏水。買新的！好", "😀 ok...", "x" * 90, "Files: none",
            "Expand for details about: logs, prices", "    return kettle;", "one two three", "?!",
        ]
    ),
    max_size=12,
).map("\n".join)  # fmt: skip
REQUESTS = st.builds(
    SummaryRequest, LINES, st.integers(0, 120), previous=st.one_of(st.none(), LINES), is_aggressive=st.booleans()
)


@given(REQUESTS, st.sampled_from([PLAIN, WHOLE]))
def test_a_summary_has_words_is_within_its_target_and_never_longer_than_its_source(request, extractive):
    (result,) = extractive.summarize([request], incidents=Counter())
    if result.failure is not None:
        assert (result.text, result.confidence) == ("", 0.0)
        return
    assert result.text.strip()
    assert 0 <= result.confidence <= 1
    assert TOKENS.count([result.text])[0] <= max(1, request.target_tokens)
    assert utf16_length(result.text) <= utf16_length(request.text)


RULES = st.sampled_from(["Never push to main.", "You must always run the tests.", "Do not use the old parser."])


@given(RULES, st.lists(LINES, max_size=3), st.integers(40, 120), st.integers(0, 3))
def test_a_rule_of_a_user_is_kept_word_for_word_with_its_speaker(rule, others, target, place):
    said = [f"[2026-03-01 09:0{i} UTC] assistant:\n{text or 'Nothing.'}\n{words(60)}." for i, text in enumerate(others)]
    said.insert(place, f"[2026-03-01 09:07 UTC] user:\n{rule} {words(60, start=60)}.")
    lines = summary("\n\n".join(said), target, WHOLE).text.splitlines()
    assert any(rule in line and "user: " in line for line in lines)


ALLERGY = "I am allergic to peanuts, never book a Thai restaurant."
PREFERENCE = "My favourite colour is yellow."


@pytest.mark.parametrize("time", ["undated", "2026-01-05 09:00 UTC"])
@given(slack=st.integers(0, 12), is_last=st.booleans())
@example(slack=9, is_last=False)  # the lines below left room for a part of the rule
def test_no_preference_no_time_and_no_last_line_takes_a_rules_place(time: str, slack: int, is_last: bool) -> None:
    said = [PREFERENCE, ALLERGY] if is_last else [ALLERGY, PREFERENCE]
    text = "\n\n".join(f"[{time}] user:\n{one}" for one in said)
    least = TOKENS.count([f"user: {ALLERGY} "])[0] + 1
    assert f"user: {ALLERGY}" in summary(text, least + slack, WHOLE).text


def test_every_chosen_sentence_stands_behind_its_speaker() -> None:
    said = [("user", "Mend the parser today."), ("assistant", "The parser loops on empty input."),
            ("tool", "edited src/parser.py"), ("Ann (user)", "Use a for loop there.")]  # fmt: skip
    source = "\n\n".join(f"[2026-03-01 09:0{i} UTC] {who}:\n{what}" for i, (who, what) in enumerate(said))
    lines = summary(f"{source}\n{words(200)}", 60).text.splitlines()
    assert [line.split("] ")[-1] for line in lines] == [f"{who}: {what}" for who, what in said]


def test_what_is_said_nearly_the_same_is_chosen_once_unless_its_numbers_differ() -> None:
    text = "The cheapest kettle costs 30 euros now.\nThe cheapest kettle costs 30 euros now!!\n"
    text += "The cheapest kettle costs 40 euros now.\nTea is cold today.\n"
    assert summary(text, 30).text.count("30 euros") == 1
    assert summary(text, 30).text.count("40 euros") == 1
    again = summary("The goats ate the corn.\nTea is cold.\nThe Goats ate the corn.\n" * 3, 40).text
    assert again.casefold().count("the goats ate the corn.") == 1


def test_sentences_come_whole_and_in_the_order_of_the_source() -> None:
    said = [line for line in TALK.split("\n") if line and not line.startswith("[")]
    known = [sentence for line in said for sentence in line.replace(". ", ".|").split("|")]
    for target in (30, 45, 60):
        untimed = " ".join(line.split("] ", 1)[-1] for line in summary(TALK, target).text.splitlines())
        places = [known.index(s.rstrip(".") + ".") for s in untimed.split(". ")]
        assert places == sorted(set(places))
        assert len(places) > 1


def test_the_most_central_is_chosen_before_the_aside() -> None:
    text = summary(TALK, 40).text
    assert "kettle" in text
    assert "I like tea" in text  # a preference
    assert "Nobody likes cold tea" not in text


def test_of_equal_sentences_the_one_that_states_a_fact_is_chosen() -> None:
    for fact in ("The port is 8080.", "She paid 30 euros.", "It ends on 3 May 2026.", "I like tea."):
        said = "Well, that would be all.", fact, "Well, that may be it."
        stated, unread = (summary("\n".join(said), 9, replace(PLAIN, facts=facts)).text for facts in (4.0, 0.0))
        assert fact in stated
        assert fact not in unread


def test_of_two_values_the_last_one_is_stated() -> None:
    said = "ann: The port is 8080.\nbob: So it goes then.\nann: The port is 9090.\nbob: All is well."
    assert summary(said, 9, replace(PLAIN, facts=8.0, position=0.0)).text == "ann: The port is 9090."


def test_a_value_that_has_changed_since_the_summary_before_is_told_with_the_one_before() -> None:
    before = "user: The port is 8080.\nuser: The booking reference is QX7P2L.\nuser: my favourite colour is blue."
    now = "user: The port is 9090.\nuser: The booking reference is QX7P2L.\nuser: my favourite colour is green.\n"
    text = summary(now + "user: And so on and so forth, as it is always said, at length.", 40, previous=before).text
    assert "The port is 9090. (before: 8080)" in text
    assert "my favourite colour is green. (before: my favourite colour is blue)" in text
    assert "QX7P2L. (before" not in text
    again = summary(text + "\nuser: And so on.", 40, previous=text.replace("9090", "7070")).text
    assert again.count("(before: ") <= 2  # what was told of a change is not told of again


def test_room_that_the_last_line_does_not_need_is_given_to_sentences() -> None:
    text = "\n".join(f"the {word} of it is all that there was to be said of it" for word in words(30).split())
    whole = summary(text, 120, replace(WHOLE, file_operations=False)).text
    assert TOKENS.count([whole])[0] > 120 - 15  # a sentence is 15 tokens


def test_the_first_of_each_hour_has_its_time() -> None:
    lines = summary(TALK, 1000).text.splitlines()
    assert [line.startswith("[") for line in lines] == [True, False, True, False][: len(lines)]
    assert lines[0].startswith("[2026-03-01 09:05 UTC] ")


def test_a_line_names_its_speaker_once() -> None:
    said = "Ann: The goats left. They were hungry goats.\nBob: The goats ate corn. Corn is gone.\n" * 2
    assert [line.split(": ")[0] for line in summary(said, 22).text.splitlines()] == ["Ann", "Bob"]
    one_line = replace(PLAIN, speaker=0.0)
    assert summary("user: Goats left today. They were hungry goats here.\nx", 14, one_line).text.count("user: ") == 1


def test_prose_goes_before_code() -> None:
    code = "\n".join(f"    const kettle{i} = kettles[{i}];" for i in range(20))
    text = f"{code}\nThe third kettle leaks water.\n{code}"
    assert summary(text, 10).text == "The third kettle leaks water."
    assert summary(text, 10, replace(PLAIN, code_share=1.0, fullness=0.0, centrality=4.0)).text == "(code, 20 lines)"


def test_a_sentence_longer_than_the_target_is_cut_after_a_word() -> None:
    assert summary(words(100), 5).text == "word0 word1 word2"  # 20 characters: the fourth would end at 23
    assert summary("x" * 100, 5).text == "x" * 20


def test_what_the_previous_summary_says_counts_less() -> None:
    text = "The harbour crane broke down.\nThe museum door was painted.\nx y."
    first = replace(PLAIN, position=1.0, previous_share=1.0)
    assert summary(text, 8, first).text == "The harbour crane broke down."
    assert summary(text, 8, first, previous="The harbour crane broke down.").text == "The museum door was painted."
    unheard = replace(first, previous_share=0.0)
    assert summary(text, 8, unheard, previous="The harbour crane broke down.").text == "The harbour crane broke down."


def test_aggressive_aims_at_a_share_of_the_length() -> None:
    text = summary(TALK, 60, is_aggressive=True).text
    assert TOKENS.count([text])[0] <= math.floor(60 * PLAIN.aggressive_share) == 36
    assert text == summary(TALK, 36).text


def test_files_and_what_was_left_out_end_the_summary_and_count() -> None:
    text = summary(TALK, 70, WHOLE).text
    *said, files, footer = text.splitlines()
    assert said
    assert files == "Files: docs/kettles.md (created)"
    assert footer.startswith("Expand for details about: ")
    assert TOKENS.count([text])[0] <= 70
    for term in footer.removeprefix("Expand for details about: ").split(", "):
        assert term.casefold() not in " ".join(said).casefold()
    nothing_done = summary(TALK.replace("created", "read"), 70, WHOLE).text
    assert "\nFiles: none\n" in nothing_done
    assert "Files:" not in summary(TALK, 70, replace(WHOLE, file_operations=False)).text
    assert "Expand" not in summary(TALK, 70, replace(WHOLE, footer=False)).text


def test_the_last_lines_give_way_where_sentences_would_have_less_than_half() -> None:
    # "\nFiles: docs/kettles.md (created)" is 9 tokens, or "\nFiles: 1 more" 4; the least footer is 10.
    assert summary(TALK, 16, WHOLE).text.splitlines()[-1].startswith("Files: ")
    assert "Files:" not in summary(TALK, 6, WHOLE).text


def test_the_last_lines_of_condensed_summaries_are_merged() -> None:
    source = f"""\
[2026-03-01 09:00 UTC - 2026-03-01 10:00 UTC]
[2026-03-01 09:05 UTC] Ann: The kettle leaks. {words(30)}
Files: a.py (created), b.py (modified)
Expand for details about: offers, delivery dates

[2026-03-01 11:00 UTC - 2026-03-01 12:00 UTC]
The kettle was ordered. {words(30, start=30)}
Files: a.py (deleted), d.py (renamed from c.py)
Expand for details about: delivery dates"""
    lines = summary(source, 110, WHOLE, depth=1).text.splitlines()
    assert lines[-2] == "Files: b.py (modified), a.py (deleted), d.py (renamed from c.py)"
    assert lines[-1].startswith("Expand for details about: delivery dates, offers")
    assert sum("Files:" in line for line in lines) == sum("Expand" in line for line in lines) == 1
    assert lines[0].startswith("[2026-03-01 09:05 UTC] Ann: The kettle leaks.")


@dataclass(frozen=True, slots=True)
class Axes:
    """An embedder of two axes that keeps what it was asked for."""

    calls: list[list[str]] = field(default_factory=list)
    name: str = "axes"
    dim: int = 2

    def windows(self, texts: Any) -> list[list[str]]:
        return [[text] for text in texts]

    def embed(self, texts: Any, kind: TextKind) -> Vectors:
        self.calls.append(list(texts))
        return np.array([[1, 0] if "kettle" in text else [0, 1] for text in texts], np.float32)


def test_confidence_is_what_the_sentences_stand_for() -> None:
    # Two sentences at a right angle, of four words each, sharing none: cos((1,1)/√2, (1,0)) · half of the words.
    result = summary("Red kettle leaks water.\nBlue museum opens doors.", 7, replace(PLAIN, embedder=Axes()))
    assert result.text == "Red kettle leaks water."
    assert result.confidence == pytest.approx(1 / math.sqrt(2) * (4 / 8), abs=1e-5)
    assert result.model == "axes"


def test_all_sentences_of_all_requests_are_embedded_at_once_each_once() -> None:
    axes = Axes()
    requests = [
        SummaryRequest("One cat. Two cats.", 5),
        SummaryRequest("Two cats. Three cats.", 5, previous="One cat."),
    ]
    replace(PLAIN, embedder=axes).summarize(requests, incidents=Counter())
    assert axes.calls == [["One cat.", "Two cats.", "Three cats."]]


WEIGHTS = ("centrality", "coverage", "position", "speaker", "fullness", "redundancy", "importance", "facts",
           "frequency_exponent", "cost_exponent")  # fmt: skip


def test_every_weight_changes_what_is_chosen() -> None:
    lines = [line for line in TALK.replace(". ", ".\n").splitlines() if line and not line.startswith("[")]
    speakers = itertools.cycle(["Ann (user)", "Ann (user)", "Bob"])
    text = "\n".join(f"{speaker}: {line}" for speaker, line in zip(speakers, lines, strict=False))

    def chosen(**weights: float) -> list[str]:
        return [summary(text, target, replace(PLAIN, **weights)).text for target in range(24, 80, 4)]

    by_default = chosen()
    without_effect = [name for name in WEIGHTS if chosen(**{name: 0.0}) == chosen(**{name: 6.0}) == by_default]
    assert without_effect == []
