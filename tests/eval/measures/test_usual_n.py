"""The n of a row of means is that of most of them: one that is of another number says its own."""

from eval.measures.means import Entry, usual_n


def entries(*counts: int | None) -> list[Entry | None]:
    return [None if n is None else {"value": 0.5, "n": n, "low": None, "high": None} for n in counts]


def test_one_measure_of_more_queries_does_not_make_all_others_say_theirs() -> None:
    assert usual_n(entries(8, 8, 9)) == 8
    assert usual_n(entries(None, 9, 8, 8)) == 8
    assert usual_n(entries(9, 8)) == 9
    assert usual_n(entries(None)) == usual_n([]) == 0
