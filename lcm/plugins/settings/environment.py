"""Files of variables: one `NAME=VALUE` a line, in the words of a shell."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from lcm.errors import LcmError
from lcm.plugins.lossless_claw.settings import NEWEST, SETTINGS, from_environment
from lcm.plugins.settings.table import ABSENT, Table, at


def variables(table: Table, document: Mapping[str, Any], by_variable: Mapping[str, Any]) -> dict[str, str]:
    """A plugin's settings as its variables; a list with a comma in an item has no variable."""
    found = {}
    for row in table.rows:
        value = by_variable.get(row.path, at(document, row.path))
        if row.environment and value is not ABSENT:
            text = _text(value)
            if text is not None:
                found[row.environment] = text
    return found


def settings(table: Table, text: str, name: str) -> dict[str, Any]:
    """The settings that a file of variables gives, by the plugin's names of them.

    Raises:
        LcmError: if a line is no variable, or one of no setting, or has a value that cannot be read.
    """
    known = {row.environment: row for row in table.rows if row.environment}
    readers = {setting.environment: setting for setting in (*NEWEST, *SETTINGS)}
    found = {}
    for variable, value in parsed(text, name).items():
        if variable not in known:
            raise LcmError(f"{name}: {variable}: {table.plugin} has no such variable")
        read = from_environment(readers[variable], {variable: value})
        if read is None:
            raise LcmError(f"{name}: {variable}={value!r} cannot be read")
        found[known[variable].path] = read
    return found


def rendered(values: Mapping[str, str], what: str) -> str:
    """The text of such a file; `set -a; . FILE; set +a` sets them."""
    return "".join([f"# {what}\n", *(f"{name}={shlex.quote(value)}\n" for name, value in values.items())])


def parsed(text: str, name: str) -> dict[str, str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise LcmError(f"{name}: {error}") from error
    if wrong := [word for word in words if "=" not in word]:
        raise LcmError(f"{name}: {wrong[0]!r} is no NAME=VALUE")
    return dict(word.split("=", 1) for word in words)


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return None if any("," in item for item in value) else ",".join(value)
    return value if isinstance(value, str) else json.dumps(value)
