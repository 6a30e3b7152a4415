"""What is wrong with refusals: each must come as one line that holds given words."""

from collections.abc import Callable

from lcm.errors import DatasetError


def misread(load: Callable[[], object], *words: str) -> list[str]:
    """Return the refusal where it has several lines or lacks some of the words, and a note where there is none."""
    try:
        load()
    except DatasetError as error:
        told = str(error)
        return [] if "\n" not in told and all(one in told for one in words) else [f"{told} in place of {words}"]
    return [f"loaded in place of {words}"]
