import pytest

from lcm.errors import ModelError
from lcm.language_model.none import NoModel


def test_whoever_asks_is_told_how_to_choose_one() -> None:
    with pytest.raises(ModelError, match=r"^no language model is configured: choose language_model=openai_compatible"):
        NoModel().reply("", "hello")
