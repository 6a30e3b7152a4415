"""Whether a plugin's configuration is valid: the path and the rule, in one line."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from lcm.errors import LcmError
from lcm.plugins.settings.table import is_secret


def check(document: Any, schema: Mapping[str, Any], name: str) -> None:
    """Refuse a configuration that its schema does not allow.

    Raises:
        LcmError: `NAME: retrieval.vectorWeight: 1.4 is greater than the maximum of 1`.
    """
    if problem := misfit(document, schema):
        raise LcmError(f"{name}: {problem}")


def misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a value, with the path at which it is; None where nothing is."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(value))
    if error is None:
        return None
    path = ".".join(map(str, error.absolute_path))
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(error.schema["properties"])
        name = next(name for name in error.instance if name not in known)
        near = get_close_matches(str(name), known, n=1)
        message = f"no such setting{f': is {near[0]} meant?' if near else ''}"
        path = f"{path}.{name}" if path else str(name)
    else:
        message = " ".join(error.message.split())
        if is_secret(path):
            message = f"*** is not valid: {error.validator} must be {error.validator_value!r}"
    return f"{path}: {message}" if path else message
