"""Hard text is never cut: where there is too much of it, it is refused."""

from collections.abc import Sequence

from lcm.errors import LcmError
from lcm.records import AuthoredNode


def check_hard_budget(nodes: Sequence[AuthoredNode], budget_tokens: float, remedy: str) -> None:
    """Refuse hard nodes that take more than their budget.

    Args:
        nodes: all that is authored; those of other tiers do not count.
        budget_tokens: of all hard nodes together. As a share of a prompt's: tokens of the prompt x share of it that
            memory may take x share of that for hard text.
        remedy: what else to do about it than to shorten lists and front matter: `raise KEY`.

    Raises:
        LcmError: with what they take, the budget, and where most of it stands.

    Source: libravdb memory 1.4.4.
    """
    taken: dict[str, int] = {}
    for node in nodes:
        if node.tier == "hard":
            taken[node.source] = taken.get(node.source, 0) + node.tokens
    total = sum(taken.values())
    if total <= budget_tokens + 1e-9:
        return
    most = max(taken, key=lambda source: taken[source])
    raise LcmError(
        f"the hard authored text takes {total} tokens ({taken[most]} of them in {most!r}), its budget is "
        f"{budget_tokens:g}, and it is never cut: make list items paragraphs or quotes, shorten front matter, "
        f"or {remedy}"
    )
