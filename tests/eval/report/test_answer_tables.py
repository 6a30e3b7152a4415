"""The tables of what answers are worth."""

from eval.report.run_tables import answer_tables

TOLD = {"value": 0.5, "n": 2, "low": 0.0, "high": 1.0}


def summary(**measures: object) -> dict[str, object]:
    return {"measures": {"recall@10": TOLD, **measures}, "arms": {"bm25": measures}, "categories": {}}


def test_arms_stand_beside_each_other_with_what_pairs_with_nothing() -> None:
    run = summary(squad_F1=TOLD, abstention_recall=TOLD) | {"answers": {"bm25": {"abstention_precision": TOLD}}}
    ((heading, title, rows, columns),) = answer_tables(run)
    assert (heading, title) == ("answers", "mean over the queries of each kind")
    assert columns == ["squad_F1", "abstention_recall", "abstention_precision"]
    assert rows == {
        "system": {"squad_F1": TOLD, "abstention_recall": TOLD},
        "bm25": {"squad_F1": TOLD, "abstention_recall": TOLD, "abstention_precision": TOLD},
    }


def test_categories_follow_with_the_columns_that_they_have() -> None:
    run = summary(squad_F1=TOLD) | {"categories": {"temporal": {"squad_F1": TOLD}, "unanswerable": {"recall@10": TOLD}}}
    _, (heading, _, rows, columns) = answer_tables(run)
    assert (heading, rows, columns) == ("category", {"temporal": {"squad_F1": TOLD}}, ["squad_F1"])
    assert list(answer_tables(summary())) == [], "a run without answers"
