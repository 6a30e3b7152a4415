"""What every request to a model's server has in common."""

import requests
import urllib3


def without_netrc(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """No other authentication: requests would put that of a .netrc in the place of the key."""
    return request


def is_timeout(error: requests.RequestException) -> bool:
    """Say whether the server was too slow: in the middle of a reply requests calls that an error of the connection."""
    cause = error.args[0] if error.args else None
    return isinstance(error, requests.Timeout) or isinstance(cause, urllib3.exceptions.ReadTimeoutError)
