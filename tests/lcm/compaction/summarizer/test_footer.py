from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.summarizer.footer import FOOTER, footer, names
from lcm.token_estimator import Utf16Units

TOKENS = Utf16Units()
DROPPED = ["The parser bug hides in parser_test.go.", "That parser bug again.", "We met Alice about the budget."]


def terms(dropped: list[str], kept: str = "", earlier: tuple[str, ...] = (), budget_tokens: int = 100) -> list[str]:
    line = footer(dropped, names(dropped), kept, earlier, budget_tokens, TOKENS)
    assert line.startswith(FOOTER)
    return line.removeprefix(FOOTER).split(", ")


def test_names_come_first_then_what_was_dropped_most_and_stands_in_few_sentences() -> None:
    # 2 · 2 · log(1 + 3/2) of a pair; "hides", "met" and "budget" were dropped once
    assert terms(DROPPED) == ["Alice", "parser_test.go", "parser bug"]
    assert terms([*DROPPED, "Open parser_test.go."])[:2] == ["parser_test.go", "Alice"]


def test_names_are_those_that_can_be_told_without_their_sentence() -> None:
    said = "We hear that Bob Smith pays 30 euros for order ZK41Q7 at https://a.example/x; see src/a.py, src/a.py."
    assert names([said, "src/a.py"]) == {"Bob Smith": 1, "ZK41Q7": 1, "https://a.example/x": 1, "src/a.py": 2}
    assert names(["The booking reference is QX7P2L."]) == {}  # of another booking it is another


def test_of_a_long_path_its_end_is_named_however_long_it_is() -> None:
    deep = f"/home/somebody/{'deep/' * 20}tui/tui-renderer.ts"
    assert terms([f"Look at {deep} first.", "And on."])[0] == "tui/tui-renderer.ts"
    assert names([f"{deep} and src/a.py"]) == {"tui/tui-renderer.ts": 1, "src/a.py": 1}


def test_as_many_names_are_told_as_fit_and_eight_terms_where_there_are_fewer_names() -> None:
    people = [f"We met Person{letter} there." for letter in "ABCDEFGHIJKL"]
    assert len(terms(people)) == 12
    assert len(terms(people, budget_tokens=20)) < 8
    once_more = "gardens rivers kettles windows bridges castles ponds meadows valleys harbours orchards"
    assert len(terms([once_more, once_more])) == 8


def test_what_the_summary_holds_is_not_named_and_what_earlier_ones_left_out_is() -> None:
    assert terms(DROPPED, kept="Alice found the parser bug; it hides.") == ["parser_test.go"]
    earlier = ("full config diff, stack traces.", "exact wording")
    assert terms(DROPPED, earlier=earlier)[:3] == ["full config diff", "stack traces", "Alice"]


def test_where_there_are_no_names_words_stand_in_but_no_numbers_and_no_words_of_programs() -> None:
    assert terms(["We met about a budget."]) == ["met"]
    assert terms(["Checked 232 files in 38ms, here's the output of catch.", "12345678901"]) == ["checked"]
    assert terms([]) == terms(["and so on, the of."]) == ["exact wording"]
    assert terms(["解析器坏了", "解析器"])[:2] == ["解析", "析器"]  # CJK by pairs of characters


@given(st.lists(st.text(max_size=30), max_size=6), st.text(max_size=20), st.integers(10, 60))
def test_a_footer_is_one_line_within_its_budget(dropped: list[str], kept: str, budget_tokens: int) -> None:
    line = footer(dropped, names(dropped), kept, (), budget_tokens, TOKENS)
    assert len(line.splitlines()) == 1
    assert TOKENS.count([line])[0] <= budget_tokens  # "Expand for details about: exact wording" is 39 / 4 = 10
