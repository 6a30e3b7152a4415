"""How queries go down the widths."""

from lcm.retrieval.vector_index.hnsw_tiers import Numbers, Step, descend


def asked_of(evidence: list[float | None], log: list[list[int]]):
    """A width that found one document of each query, or nothing where the evidence is None."""

    def ask(numbers: Numbers) -> list[Step]:
        log.append(numbers.tolist())
        return [
            Step(([], []), 0.0) if (e := evidence[number]) is None else Step((["d"], [e]), e)
            for number in numbers.tolist()
        ]

    return ask


def test_a_query_ends_where_its_evidence_reaches_the_threshold() -> None:
    log: list[list[int]] = []
    widths = [asked_of([0.65, 0.64, None], log), asked_of([0.9, 0.75, 0.74], log), asked_of([0.1, 0.2, None], log)]
    found = descend(3, widths, [0.65, 0.75])
    assert log == [[0, 1, 2], [1, 2], [2]]
    assert [way[-1].answer for way in found] == [(["d"], [0.65]), (["d"], [0.75]), ([], [])]
    assert [(step.place, step.evidence) for step in found[2]] == [(0, 0.0), (1, 0.74), (2, 0.0)]
    (way,) = descend(1, [asked_of([None], log), asked_of([0.3], log)], [0.0])  # nothing found is no exit
    assert way[-1].answer == (["d"], [0.3])
