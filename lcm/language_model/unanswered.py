"""The failure of a model that was reached and has nothing to say."""

from lcm.errors import ModelError


class UnansweredError(ModelError):
    """A model replied without words, or not in time: nothing is wrong with how it was asked."""
