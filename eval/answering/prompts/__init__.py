"""The words that models are asked with.

A version stands in the name of its file and in its first line, and so in what replies are recorded by: other words are
another version, under another number.
"""

from importlib import resources

ANSWER_VERSION = 1
JUDGE_VERSION = 1


def prompt(name: str, version: int) -> str:
    """The words of a version of a prompt."""
    return resources.files(__package__).joinpath(f"{name}_{version}.txt").read_text("utf-8").strip()
