"""What is wrong with a summary though it reads like one."""

from collections.abc import Iterator
from dataclasses import replace

from lcm.compaction.quality import is_cut, lost_rules, rules_found, rules_of_summaries, summary_harm
from lcm.records.conversation import Part
from tests.lcm.compaction.contexts import message

RULE = "Never push to main without asking me."
SOURCE = f"[2026-01-05 09:00 UTC] user:\n{RULE} Mend the parser, it loops on empty input."


def test_a_summary_as_long_as_its_source_is_no_smaller() -> None:
    assert summary_harm("words", SOURCE, (), 20, 20).is_no_smaller
    assert not summary_harm("words", SOURCE, (), 19, 20)
    assert not summary_harm("words", SOURCE, (), 5, 0), "of a source that costs nothing there is nothing to save"


def test_the_beginning_of_the_source_is_no_summary() -> None:
    notes = (
        *("", "\n[Truncated from 30 tokens]", "\n[Truncated for context management]"),
        "\n[LCM fallback summary; truncated for context management]",
        "\n[LCM fallback summary; directive-shaped untrusted content omitted]\n[Truncated from 30 tokens]",
    )
    assert all(is_cut(SOURCE[:60] + note, SOURCE) for note in notes)
    for whole in (SOURCE.replace("\n", "  "), "user: Mend the parser.", ""):  # all of it is another harm
        assert not is_cut(whole, SOURCE)


def test_a_rule_is_kept_where_a_line_holds_three_of_five_of_its_words() -> None:
    # push, main, asking (never, without and me are stop words or negations of none): two of three are enough
    for kept in ("user: never push to main", "The parser was mended.\nuser: never push to main"):
        assert list(lost_rules(kept, [RULE])) == [], "one line is enough"
    for lost in (
        *("", "The parser was mended.\nMain matters.", "They spoke.\nFiles: push/main/asking.md (deleted)"),
        "They spoke.\nExpand for details about: never push, main, asking",
    ):
        assert list(lost_rules(lost, [RULE])) == [RULE]


def test_rules_are_those_of_users() -> None:
    said = [message(1, f"{RULE} Thanks!"), message(2, RULE, "assistant"), message(3, RULE)]
    assert list(rules_found(said)) == [RULE, RULE]
    pasted = replace(message(4, RULE), parts=(Part("tool", RULE, tool_call_id="1"),))
    assert list(rules_found([pasted])) == [], "what a tool returned, in formats that give it to the user"
    assert rules_of_summaries([f"[2026-01-05 09:00 UTC] user: {RULE}\nassistant: {RULE}"]) == [RULE]


def test_what_a_pasted_program_says_is_no_rule() -> None:
    pasted = (
        "This fails:\n# Define the maximum allowed image size in KB\nMAX_SIZE = 500\n\n"
        "    return jsonify({'error': 'All fields are required'}), 400\n\n" + RULE
    )
    assert list(rules_found([message(1, pasted)])) == [RULE]
    listed = f"Mind:\n    - {RULE}\nNever call parse(x, y); use read(x).\nThanks."
    assert len(list(rules_found([message(1, listed)]))) == 2, "indented rules, and code within one, are no program"


def test_no_more_rules_are_read_than_must_be_to_find_so_many_lost() -> None:
    read = []

    def rules() -> Iterator[str]:
        for number in range(9):
            read.append(number)
            yield f"Never push {number} to main."

    assert summary_harm("words", SOURCE, rules(), 1, 9, most_rules=1).lost_rules == ("Never push 0 to main.",)
    assert read == [0]
    assert len(summary_harm("words", SOURCE, rules(), 1, 9).lost_rules) == 9


def test_each_harm_is_an_incident() -> None:
    harm = summary_harm(SOURCE[:24], SOURCE, [RULE], 30, 30)
    wrong = ("is no smaller than its source", "is the cut beginning of its source", "lost rules of the user")
    assert list(harm.incidents) == [f"a summary {one}" for one in wrong]
