"""What every request to a model's server has in common."""

import requests
import urllib3


def without_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No other authentication: requests would put that of a .netrc in the place of the key."""
    return request


def is_timeout(error: Exception) -> bool:
    """Say whether the server was too slow: in the middle of a reply requests calls that an error of the connection."""
    cause = error.args[0] if error.args else None
    of_urllib3 = urllib3.exceptions.ReadTimeoutError
    return isinstance(error, requests.Timeout | of_urllib3) or isinstance(cause, of_urllib3)
