"""No language model."""

from dataclasses import dataclass

from lcm.errors import ModelError
from lcm.protocols.models import Usable


@dataclass(frozen=True, slots=True)
class NoModel:
    """Whoever asks is told how to choose one."""

    def reply(
        self,
        system: str,
        prompt: str,
        is_usable: Usable | None = None,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Never replies.

        Raises:
            ModelError: always.
        """
        raise ModelError(
            "no language model is configured: choose language_model=openai_compatible and set its base_url, model and "
            "the environment variable that its api_key_env names"
        )
