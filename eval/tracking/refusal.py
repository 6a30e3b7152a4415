"""Why MLflow did not take something, or give it."""

_LONGEST = 160


def is_silence(error: BaseException) -> bool:
    """Whether a server did not answer: asked once more, it would be waited for as long again."""
    from requests.exceptions import ConnectionError as NoConnection  # here, because only servers need it
    from requests.exceptions import Timeout

    return isinstance(error.__cause__ or error.__context__, NoConnection | Timeout)


def reason_of(error: BaseException) -> str:
    """On one line."""
    if is_silence(error):
        return "it does not answer: see whether it runs, and can be reached from here"
    reason = " ".join(str(error).split())
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]}..."
