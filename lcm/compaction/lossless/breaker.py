"""A pause after credentials were refused again and again."""

from datetime import datetime, timedelta


class CircuitBreaker:
    """Opens after so many refusals in a row, and closes after a while or at the first success. In memory only.

    Source: lossless-claw 0.6.3, which keeps one for each model.
    """

    def __init__(self, threshold: int, cooldown_seconds: float) -> None:
        """
        Args:
            threshold: refusals in a row that open it.
            cooldown_seconds: how long it stays open.
        """
        self._threshold = threshold
        self._cooldown = timedelta(seconds=cooldown_seconds)
        self._refusals = 0
        self._opened_at: datetime | None = None

    def is_open(self, now: datetime) -> bool:
        """Say whether to wait. Replays tell their own time: one that runs earlier than the opening does not wait."""
        if self._opened_at is None or now < self._opened_at:
            return False
        if now - self._opened_at < self._cooldown:
            return True
        self.succeed()
        return False

    def refuse(self, now: datetime) -> None:
        self._refusals += 1
        if self._refusals >= self._threshold:
            self._opened_at = now

    def succeed(self) -> None:
        self._refusals = 0
        self._opened_at = None
