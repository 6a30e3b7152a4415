"""An answer in time, or none."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread

from lcm.errors import UnansweredError


def within(ask: Callable[[], str], seconds: float | None) -> str:
    """Ask, and wait no longer than so many seconds; None = as long as it takes.

    A question that is given up goes on unheard until its own waits are over, and keeps nothing from ending.

    Raises:
        UnansweredError: if there is no answer in time.
    """
    if seconds is None:
        return ask()
    answer: Future[str] = Future()

    def asked() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=asked, name="summary", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError as error:
        if answer.done():  # it came just now, or the error is its own
            return answer.result()
        raise UnansweredError(f"the language model gave no summary within {seconds:g} s") from error
