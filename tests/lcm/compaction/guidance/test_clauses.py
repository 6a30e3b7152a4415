from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.scanner import ByteScanner

FRAME = ClauseRules()


SMALL_TALK = [
    *("No problem, thanks", "Build times are long these days."),
    *("No worries, see you then.", "Test coverage is at eighty percent.", "You must imagine a city without clocks?"),
    "If only it would stop raining, check the roof was my first thought.",
]
NO_RULES = [
    *("We had to leave early.", "She said we must not wait.", "Should I always use tabs?", "Rename that file for me."),
    *('He shouted "never come back" and left.', "```\nnever = True\nAlways run this.\n```"),
    "We agreed you would come.",
    "1539:                self.only = self.value_field.only",
    "never_retry = allowed.only(always)",
    "2026-01-02 10:00:00 WARN access must not be retried",
]
RULES = {
    "If the build is red, never merge.": "forbidden",
    "When a guest asks, you must not name the owner.": "forbidden",
    "Under no circumstances share the code.": "forbidden",
    "- no wildcard imports": "forbidden",
    "Don’t call after nine.": "forbidden",
    "We agreed you never commit secrets.": "forbidden",
    "If the disk is full, delete the oldest backup.": "obligation",
    "All ledgers are to be stored in the safe.": "obligation",
    "The assistant must greet every visitor.": "obligation",
    "## Always sign commits": "obligation",
    "alwasy answer in Danish": "obligation",
    "We have agreed that you always run the tests first.": "obligation",
    "Feel free to shorten the quotes.": "permitted",
    "I don't mind if you skip the summary.": "permitted",
}


def test_rules_are_found_wherever_they_stand() -> None:
    assert {text: FRAME.read(text).label for text in RULES} == RULES


def test_small_talk_nouns_and_what_is_past_reported_asked_once_or_quoted_are_no_rules() -> None:
    assert [text for text in (*SMALL_TALK, *NO_RULES) if FRAME.read(text).is_guidance] == []
    for text in (*SMALL_TALK[:2], "Test coverage: eighty percent."):
        assert ByteScanner().read(text).is_guidance, "the original takes it for a rule"


def test_a_finding_names_its_rule_and_its_words() -> None:
    text = "Grüße! Every reply must cite a source."
    (found,) = FRAME.read(text).findings
    assert (found.rule, text.encode()[found.start : found.end]) == ("must", b"must")


def test_a_message_says_every_rule_that_it_holds() -> None:
    reading = FRAME.read("You must sign every commit. Never push on Fridays. Feel free to use emojis.")
    assert [found.modality for found in reading.findings] == ["obligation", "forbidden", "permitted"]
    assert reading.mask == 2 | 4 | 8


@given(st.text(max_size=200) | st.text(alphabet="must not never .,;:?!\n-`\"'you no if always ", max_size=120))
def test_findings_lie_within_the_text_whatever_it_is(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    for frame in (FRAME, ByteScanner()):
        assert all(0 <= found.start < found.end <= size for found in frame.read(text).findings)


def test_the_originals_offsets_are_bytes_and_every_rule_fires() -> None:
    found = {
        "é You must not go.": [(7, 11, "forbidden")],
        "If it fails, make sure to check it.": [(13, 25, "obligation")],
        "ON_DISK_FULL -> Delete_Oldest": [(0, 12, "obligation")],
        "to get it going, then run it": [(22, 25, "obligation"), (22, 25, "obligation")],
        "If you need hints don't check it": [(24, 29, "forbidden"), (24, 29, "obligation")],
        "It ran,check it": [(7, 12, "obligation")],
        "It ran, check it": [],
        "The design goal is: preserve order": [],
    }
    assert {text: [one[:3] for one in ByteScanner().read(text).findings] for text in found} == found
