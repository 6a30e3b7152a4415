"""Overrides: `KEY=VALUE` and `GROUP=CHOICE`, read as Hydra reads them, and written so that it reads them back."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lcm.errors import LcmError

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override
    from hydra.errors import OverrideParseException

_NAME = r"[A-Za-z_][A-Za-z0-9_-]*"
_PLAIN = re.compile(
    rf"(?P<sign>\+?\+?|~)(?P<key>{_NAME}(?:(?:\.{_NAME})+|(?:/{_NAME})+)?)(?:@(?P<package>{_NAME}(?:\.{_NAME})*))?"
    r"(?:=(?P<value>[A-Za-z0-9_./-]*|\[(?:[A-Za-z0-9_./-]+(?:,[A-Za-z0-9_./-]+)*)?\]))?"
)
_WORD, _WHOLE, _DECIMAL = (
    re.compile(r"[A-Za-z_/][A-Za-z0-9_./-]*"),
    re.compile(r"-?(0|[1-9][0-9]*)"),
    re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+"),
)
_WORDS = {"null": None, "true": True, "false": False}
_SPECIAL, _MARKED = re.compile(r"""([\\()\[\]{}:=,\s"'])"""), r"\\\1"


def key_of(override: str) -> str:
    """The key that an override sets, or the group that it chooses of."""
    return override.lstrip("+~").partition("=")[0]


def group_of(override: str) -> str:
    """The group that an override chooses of, or sets something in; of `GROUP@PLACE` the place, where that is read."""
    return re.split(r"[./]", key_of(override).rpartition("@")[2], maxsplit=1)[0]


class Asked(NamedTuple):
    """An override, taken apart."""

    text: str
    sign: str
    """Nothing, `+`, `++` or `~`."""
    key: str
    """A key, or a group."""
    package: str | None = None
    """Behind `@`."""
    value: Any = None
    """Plain data; None of one that is swept."""
    swept: str | None = None
    """How a value that is several is told; None = it is one."""

    @property
    def group(self) -> str:
        """The part before the first dot: the group that it chooses of, or sets something in."""
        return self.key.partition(".")[0]

    @property
    def is_hydras(self) -> bool:
        return self.key.startswith(("hydra.", "hydra/"))


def asked(text: str) -> Asked:
    """Read an override; Hydra's own grammar is imported where it takes more than names, numbers and lists of them."""
    if (plain := _PLAIN.fullmatch(text)) and (plain["sign"] == "~" or plain["value"] is not None):
        try:
            return Asked(text, plain["sign"], plain["key"], plain["package"], _plain(plain["value"]))
        except ValueError:
            pass
    return _by_hydra(text)


def _plain(value: str | None) -> Any:
    """Raises ValueError where the grammar must tell what is meant."""
    if not value:
        return value
    if value.startswith("["):
        return [_plain(one) for one in value[1:-1].split(",") if one]
    if value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if _WHOLE.fullmatch(value):
        return int(value)
    if _DECIMAL.fullmatch(value):
        return float(value)
    if _WORD.fullmatch(value) and value.lower() not in ("nan", "inf"):
        return value
    raise ValueError(value)


@lru_cache(maxsize=1024)
def _by_hydra(text: str) -> Asked:
    from hydra.core.override_parser.types import OverrideType, ValueType
    from hydra.errors import HydraException, OverrideParseException

    try:
        (read,) = parsed([text])
        signs = {OverrideType.ADD: "+", OverrideType.FORCE_ADD: "++", OverrideType.DEL: "~", OverrideType.CHANGE: ""}
        swept = None
        if read.is_sweep_override():
            is_listed = read.value_type is ValueType.SIMPLE_CHOICE_SWEEP
            lists = f"; for one list write {read.get_key_element()}=[A,B]" if is_listed else ""
            swept = f"{text}: several values make a multirun, add -m{lists}"
        value = None if swept else read.value()
    except OverrideParseException as error:
        raise LcmError(no_override(error)) from error
    except HydraException as error:
        raise LcmError(f"{text!r} is not an override: {' '.join(str(error).split())}") from error
    return Asked(text, signs[read.type], read.key_or_group, read.package, value, swept)


def parsed(overrides: Sequence[str]) -> "list[Override]":
    """Overrides as Hydra reads them."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_overrides(list(overrides))


def quoted(value: Any) -> str:
    """A value as Hydra reads it back, letter by letter."""
    if isinstance(value, list):
        return f"[{','.join(map(quoted, value))}]"
    if isinstance(value, Mapping):
        marked = (f"{_SPECIAL.sub(_MARKED, str(name))}:{quoted(child)}" for name, child in value.items())
        return f"{{{','.join(marked)}}}"
    if not isinstance(value, str):
        return json.dumps(value)
    text = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + r"\${", value)
    return '"' + re.sub(r'(\\*)("|$)', lambda found: found[1] * 2 + (r"\"" if found[2] else ""), text) + '"'


def no_override(error: "OverrideParseException") -> str:
    """One line for a text that Hydra's grammar refuses: how to write it, in a shell too."""
    text = str(error.override)
    reason = str(error).removeprefix(f"Error parsing override '{text}'\n").partition("\nSee ")[0]
    remedy = _with_quotes(text) or _mapped(text) or _all_with_quotes(text) or "write KEY=VALUE or GROUP=CHOICE"
    return f"{error.override!r} is not an override: {remedy} ({' '.join(reason.split())})"


def _with_quotes(text: str) -> str | None:
    """None where the value is no text, but a list, say."""
    written = re.fullmatch(r"([\w.@/+~]+)=([^='\"\[{(].*)", text, re.DOTALL)
    return written and f"quote its value, {shlex.quote(f'{written[1]}={_in_quotes(written[2])}')}"


def _all_with_quotes(text: str) -> str | None:
    """How to write a list of such texts; None where that is none."""
    written = re.fullmatch(r"([\w.@/+~]+)=\[([^'\"\[\]{}]+)\]", text, re.DOTALL)
    if written is None:
        return None
    values = ",".join(_in_quotes(value.strip()) for value in written[2].split(","))
    return f"quote its values, {shlex.quote(f'{written[1]}=[{values}]')}"


def _in_quotes(value: str) -> str:
    quote = "'" if '"' in value and "'" not in value else '"'
    value = re.sub(rf"\\*(?={quote}|$)", lambda slashes: slashes[0] * 2, value).replace(quote, f"\\{quote}")
    return f"{quote}{value}{quote}"


def _mapped(text: str) -> str | None:
    """How to write the word of a list that holds a =; None where there is none."""
    word = re.search(r"[\[,]\s*([\w.-]+)=([^,\]'\"{}=]*)", text)
    if word is None:
        return None
    return f'quote the word that holds a =, "{word[1]}={word[2]}", or write a map, {{{word[1]}:{word[2]}}}'
