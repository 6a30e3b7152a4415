"""Whether the fields of a component are what they may be: one call for the fields of one range, with one wording."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, get_args


def check_range(
    component: object,
    *names: str,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    or_null: bool = False,
    or_infinite: bool = False,
    is_whole: bool = False,
) -> None:
    """Refuse fields that are no finite number within bounds; of a mapping or a list each value is checked.

    Args:
        component: whose fields.
        names: of the fields.
        ge: the least; `gt`: what it must exceed.
        le: the most; `lt`: what it must stay below.
        or_null: None is fine.
        or_infinite: so is infinity, which is no limit.
        is_whole: so is a whole number alone.
    Raises:
        ValueError: "half_life_days must be > 0, got -3".
    """
    for name, value in _values(component, names):
        if (or_null and value is None) or (or_infinite and value == math.inf):
            continue
        is_number = isinstance(value, int if is_whole else Real) and not isinstance(value, bool)
        if not is_number or not -math.inf < value < math.inf or not _is_within(value, ge, gt, le, lt):
            kind = "a whole number " if is_whole else ""
            allowed = f"{kind}{_range(ge, gt, le, lt)}".strip() or "a finite number"
            allowed += f"{' or null' if or_null else ''}{' or .inf' if or_infinite else ''}"
            raise ValueError(f"{name} must be {allowed}, got {value!r}")


def check_keys(component: object, **names: Collection[str]) -> None:
    """Refuse mappings that have other keys than their names.

    Args:
        component: whose fields.
        names: of each field, in the order in which they are told.
    Raises:
        ValueError: "weights has no 'new'; choose from: novelty, recency"; "weights must name recency, got novelty".
    """
    for field, allowed in names.items():
        given = getattr(component, field)
        if unknown := sorted(set(given) - set(allowed)):
            raise ValueError(f"{field} has no {unknown[0]!r}; choose from: {', '.join(allowed)}")
        if missing := [name for name in allowed if name not in given]:
            raise ValueError(f"{field} must name {', '.join(missing)}, got {', '.join(given) or 'nothing'}")


def check_weights(component: object, *names: str, le: float | None = None) -> None:
    """Refuse weights below 0 or above `le`, and weights that are all 0 or have no finite sum.

    Args:
        component: whose fields.
        names: of the fields; of a mapping each value is a weight.
        le: the most.
    Raises:
        ValueError: as `check_range`; "dense_weight and lexical_weight must not all be 0: raise one".
    """
    check_range(component, *names, ge=0, le=le)
    total = sum(value for _, value in _values(component, names))
    named = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    if total == 0:
        raise ValueError(f"{named} must not all be 0: raise one")
    if total == math.inf:
        raise ValueError(f"{named} must have a finite sum: lower one")


def check_choice(component: object, **choices: Any) -> None:
    """Refuse fields that are none of their choices.

    Args:
        component: whose fields.
        choices: of each field: a `Literal`, or a collection of names.
    Raises:
        ValueError: "precision must be one of: fp32, int8, got 'int4'".
    """
    for name, allowed in choices.items():
        names = list(get_args(allowed) or allowed)  # what a YAML holds need not be hashable
        value = getattr(component, name)
        if value not in names:
            raise ValueError(f"{name} must be one of: {', '.join(sorted(map(str, names)))}, got {value!r}")


def _values(component: object, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        value = getattr(component, name)
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", one) for key, one in value.items())
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from ((f"{name}[{i}]", one) for i, one in enumerate(value))
        else:
            yield name, value


def _is_within(value: float, ge: float | None, gt: float | None, le: float | None, lt: float | None) -> bool:
    return (
        (ge is None or value >= ge)
        and (gt is None or value > gt)
        and (le is None or value <= le)
        and (lt is None or value < lt)
    )


def _range(ge: float | None, gt: float | None, le: float | None, lt: float | None) -> str:
    """`[0, 1)` as "in [0, 1)", a single bound as ">= 0"."""
    if (ge is None and gt is None) or (le is None and lt is None):
        bounds = {">=": ge, ">": gt, "<=": le, "<": lt}
        return " and ".join(f"{sign} {bound}" for sign, bound in bounds.items() if bound is not None)
    low, high = (f"({gt}" if ge is None else f"[{ge}"), (f"{lt})" if le is None else f"{le}]")
    return f"in {low}, {high}"
