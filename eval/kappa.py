"""How far two judges agree beyond chance."""

from collections.abc import Collection, Hashable


def agreement_of(pairs: Collection[tuple[Hashable, Hashable]]) -> tuple[float, float | None]:
    """The share of equal judgements, and Cohen's kappa.

    kappa = (p - e) / (1 - e): p is the share of equal judgements, e what it would be if each judge gave its grades as
    often, but by chance. Source: Cohen 1960.

    Args:
        pairs: what both said of one thing, at least one.
    Returns:
        kappa is None where both gave one and the same to everything, so that chance explains all.
    """
    n = len(pairs)
    equal = sum(one == other for one, other in pairs) / n
    grades = {grade for pair in pairs for grade in pair}
    shares = [[sum(pair[judge] == grade for pair in pairs) / n for grade in grades] for judge in (0, 1)]
    chance = sum(a * b for a, b in zip(*shares, strict=True))
    return equal, None if chance == 1 else (equal - chance) / (1 - chance)
