"""How queries go down the widths."""

from lcm.retrieval.vector_index.hnsw_tiers import Numbers, Step, StepResult, descend


def asked_of(evidence: list[float | None], log: list[list[int]]):
    """A width that found one document of each query, or nothing where the evidence is None."""

    def ask(numbers: Numbers) -> list[StepResult]:
        log.append(numbers.tolist())
        return [
            StepResult(([], []), 0.0) if (e := evidence[number]) is None else StepResult((["d"], [e]), e)
            for number in numbers.tolist()
        ]

    return ask


def test_a_query_ends_where_its_evidence_reaches_the_threshold() -> None:
    log: list[list[int]] = []
    widths = [asked_of([0.65, 0.64, None], log), asked_of([0.9, 0.75, 0.74], log), asked_of([0.1, 0.2, None], log)]
    found = descend(3, widths, [0.65, 0.75])
    assert log == [[0, 1, 2], [1, 2], [2]]
    assert [one.answer for one in found] == [(["d"], [0.65]), (["d"], [0.75]), ([], [])]
    assert found[2].steps == (Step(0, 0.0, False), Step(1, 0.74, False), Step(2, 0.0, True))
    (found,) = descend(1, [asked_of([None], log), asked_of([0.3], log)], [0.0])  # nothing found is no exit
    assert found.answer == (["d"], [0.3])


def test_who_is_late_goes_to_the_last_width() -> None:
    log: list[list[int]] = []
    answers = iter([False, True])
    widths = [asked_of([0.1], log), asked_of([0.9], log), asked_of([0.2], log)]
    (found,) = descend(1, widths, [0.5, 0.5], is_late=lambda: next(answers))
    assert [step.place for step in found.steps] == [0, 2]
