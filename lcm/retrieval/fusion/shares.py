"""Numbers that are shares of one: weights, and columns that should be."""

import polars as pl


def refuse_weights(component: object, *names: str) -> None:
    """Refuse weights that are no shares of anything.

    Raises:
        ValueError: if one is outside [0, 1], or all are 0.
    """
    refuse_shares(component, *names)
    if not any(getattr(component, name) for name in names):
        raise ValueError(f"{', '.join(names[:-1])} and {names[-1]} must not all be 0: raise at least one")


def refuse_shares(component: object, *names: str) -> None:
    """Refuse what is not in [0, 1]."""
    for name in names:
        if not 0 <= getattr(component, name) <= 1:
            raise ValueError(f"{name} must be in [0, 1], got {getattr(component, name)}")


def shares(*weights: float) -> list[float]:
    """Each weight divided by their sum, which is not 0."""
    whole = sum(weights)
    return [weight / whole for weight in weights]


def share(column: str, least: float = 0.0) -> pl.Expr:
    """A column within [least, 1]; what is missing or no number counts as 0."""
    return pl.col(column).fill_nan(None).fill_null(0.0).clip(least, 1.0)
