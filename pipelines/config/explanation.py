"""Explanation: what Hydra, OmegaConf and components complain of, as one line with key, value and remedy."""

import difflib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import yaml
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from eval.measures.names import HEADLINE, RANKING_MEASURES
from lcm import faults
from lcm.errors import LcmError
from pipelines.config.conf_folder import EVALUATE, chosen_by, groups, settings_of
from pipelines.config.suggestion import ALIKE, meant

CONFIGURATION_ERRORS = (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError)
_ELSEWHERE = {
    "answerer": "`lcm expand-query` and `mcp`",
    "space": "`lcm tune`",
    "recall": "`lcm grep`, `describe`, `expand`, `expand-query` and `mcp`",
}
"""Group -> the commands that it belongs to, where that is not all."""

_IN_PLACE_OF_A_CHOICE = {
    "system": "; a memory of others is measured by system=external external.command=[PROGRAM] (docs/external.md)",
    "measures": "; one measure alone is named in a list, measures.retrieval.names=[{measure}]",
}
"""Group -> what may be meant by a word that is like none of its choices."""
_NAMES_ELSEWHERE = {
    **dict.fromkeys(("k", "limit", "max_results", "n_results", "top_k"), "ranking.stages.limit.n"),
    **dict.fromkeys(("embedding", "embedding_model", "embeddings"), "embedder"),
    **dict.fromkeys(("llm", "model"), "language_model"),
    **dict.fromkeys(("metric", "metrics"), "measures"),
    **dict.fromkeys(("data", "corpus"), "dataset"),
    "memory_system": "system",
}
"""What other programs call a key -> the key."""
_MOST_CHOICES = 3
"""So many that have a key are named."""

Choosing = Callable[[str], DictConfig]
"""The configuration that a command chooses, with nothing set of what is asked for at a key that it may not have."""


@contextmanager
def explained(chosen: Choosing | None = None, pipeline: str = EVALUATE) -> Iterator[None]:
    """What goes wrong inside becomes an LcmError that names the key, the value and the remedy."""
    try:
        yield
    except CONFIGURATION_ERRORS as error:
        raise LcmError(explain(error, chosen, pipeline)) from error


def explain(error: BaseException, chosen: Choosing | None = None, pipeline: str = EVALUATE) -> str:
    """One line: the key, the value, and what to do; `chosen` is what the nearest key is looked up in."""
    if isinstance(error, OverrideParseException):
        reason = re.sub(r"Error parsing override '.*?'(?= )|See https://.*", "", flat(error)).strip()
        asked = str(error.override)
        remedy = _quoted(asked) or _mapped(asked) or _all_quoted(asked) or "write KEY=VALUE or GROUP=CHOICE"
        return f"{error.override!r} is not an override: {remedy} ({reason})"
    if (line := faults.told(error)) is not None:
        return line
    if isinstance(error, yaml.YAMLError):
        return f"{flat(error)}; write it as plain YAML, without tags"
    if isinstance(error, UnicodeDecodeError) and (path := _file_of(error)):
        return f"{path} is no UTF-8 text at byte {error.start}: save it as UTF-8"
    text = str(error)
    if ambiguous := re.match(r"Ambiguous value for argument '(.*?)'\n", text):
        return f"{ambiguous[1]}: several values make a multirun, add -m; for one list write KEY=[A,B]"
    if isinstance(error, MissingConfigException) and "/" in str(error.missing_cfg_file):
        return _choice(error)
    if isinstance(error, ConfigCompositionException):
        cause = error.__cause__ or error
        return _unknown_key(f"{text} {cause}", chosen, pipeline) or flat(cause if error.__cause__ else error)
    if isinstance(error, MissingMandatoryValue):
        return f"{error.full_key} has no value: give it one with {error.full_key}=VALUE"
    if refused := re.search(r"LcmError raised while resolving interpolation: (.*) full_key: (\S+)", flat(error)):
        return f"{refused[2]}: {refused[1]}"
    if isinstance(error, OmegaConfBaseException):
        key = getattr(error, "full_key", None)
        message = _unknown_key(text, chosen, pipeline) or flat(error)
        return f"{key}: {message}" if key and str(key) not in message else message
    return flat(error)


def _quoted(override: str) -> str | None:
    """How to write a text that Hydra's grammar refuses, in a shell too; None where that is none, but a list, say."""
    written = re.fullmatch(r"([\w.@/+~]+)=([^='\"\[{(].*)", override, re.DOTALL)
    return written and f"quote its value, {shlex.quote(f'{written[1]}={_in_quotes(written[2])}')}"


def _all_quoted(override: str) -> str | None:
    """How to write a list of such texts; None where that is none."""
    written = re.fullmatch(r"([\w.@/+~]+)=\[([^'\"\[\]{}]+)\]", override, re.DOTALL)
    if written is None:
        return None
    values = ",".join(_in_quotes(value.strip()) for value in written[2].split(","))
    return f"quote its values, {shlex.quote(f'{written[1]}=[{values}]')}"


def _in_quotes(value: str) -> str:
    quote = "'" if '"' in value and "'" not in value else '"'
    value = re.sub(rf"\\*(?={quote}|$)", lambda slashes: slashes[0] * 2, value).replace(quote, f"\\{quote}")
    return f"{quote}{value}{quote}"


def _mapped(override: str) -> str | None:
    """How to write the word of a list that holds a =; None where there is none."""
    word = re.search(r"[\[,]\s*([\w.-]+)=([^,\]'\"{}=]*)", override)
    if word is None:
        return None
    return f'quote the word that holds a =, "{word[1]}={word[2]}", or write a map, {{{word[1]}:{word[2]}}}'


def _file_of(error: UnicodeDecodeError) -> str:
    """The file that Hydra was reading, which the error does not name; empty where it was no file of Hydra's."""
    name, at = "", error.__traceback__
    while at is not None:
        name, at = str(at.tb_frame.f_locals.get("full_path", name)), at.tb_next
    return name


def _choice(error: MissingConfigException) -> str:
    group, _, choice = str(error.missing_cfg_file).rpartition("/")
    options = sorted(str(option) for option in error.options or groups().get(group) or ())
    hint = meant(choice, options) or _IN_PLACE_OF_A_CHOICE.get(group, "").format(measure=_measure(choice))
    return f"{group}={choice}: no such choice; choose one of: {', '.join(options)}{hint}"


def _measure(word: str) -> str:
    """The measure of rankings that a word is nearest to, with its own cutoff; one of them where it is like none."""
    kind, at, cutoff = word.partition("@")
    kinds = {name.lower(): name for name in RANKING_MEASURES if name != "judged"}  # which is measured beside them
    near = difflib.get_close_matches(kind.lower(), kinds, n=1, cutoff=ALIKE)
    return f"{kinds[near[0]]}{at}{cutoff}" if near else HEADLINE[0]


def _unknown_key(text: str, choosing: Choosing | None, pipeline: str) -> str | None:
    """A misspelt key or group, with the nearest that exist."""
    match = re.search(r"Could not override '([^']+)'|Key '([^']+)' is not in struct", text)
    if match is None or choosing is None:
        return None
    full = re.search(r"full_key: (\S+)", text)
    key = full.group(1) if full else str(match.group(1) or match.group(2))
    try:
        chosen = choosing(key)
    except (*CONFIGURATION_ERRORS, LcmError):  # it is in a choice itself that the key is wrong
        return None
    keys = [path for path in paths("", OmegaConf.to_container(chosen)) if not path.endswith("_target_")]
    written = written_as(chosen, key)
    if written != key:
        node = written.rpartition(".")[0]
        settings = ", ".join(path for path in keys if path.rpartition(".")[0] == node)
        keys_of_it = f", with the keys {settings}" if settings else ", which has no keys"
        return f"{key}: no such key; what stands there is configured as {node}{keys_of_it}"
    above = key.rpartition(".")[0]
    if key == "trust":
        return "trust=[PACKAGE] is a word of its own on the command line: take it out of this one, and of with="
    if key in _ELSEWHERE and key not in chosen:
        return f"{key} is nothing that `lcm {pipeline}` uses: it belongs to {_ELSEWHERE[key]}"
    if (others := _in_other_choices(key, chosen)) is not None:
        return f"{key}: no such key; {others}"
    if above in groups() and set(chosen.get(above) or {}) == {"_target_"}:
        choices = ", ".join(groups()[above])
        return f"{key}: no such key; the {above} that is chosen has none. Choose another with {above}=CHOICE: {choices}"
    if above and OmegaConf.select(chosen, above) == {}:
        return f"{key}: no such key yet; add an entry to {above} with +{key}=VALUE"
    # Never the key itself: in a multirun another point may have it.
    known = sorted({*groups(), *keys} - {key})
    near = [path for path in known if path.endswith(f".{key}")][:3]
    near = near or [name for name in (_NAMES_ELSEWHERE.get(key),) if name in known]
    near = near or difflib.get_close_matches(key, known, n=3, cutoff=ALIKE)
    if (elsewhere := _nearest_of_other_choices(key, known)) is not None:
        return f"{key}: no such key; did you mean {elsewhere}?"
    remedy = f"did you mean {' or '.join(near)}?" if near else f"`lcm {pipeline} --cfg job` shows every key"
    return f"{key}: no such key; {remedy}"


def _nearest_of_other_choices(key: str, known: Sequence[str]) -> str | None:
    """A key that another choice of the group has, with that choice, where none that is known is as near."""
    group, _, path = key.partition(".")
    of_choices = [settings_of(group, choice) for choice in groups().get(group, ()) if path]
    of_group = {one for settings in of_choices for one in paths(group, settings)}
    nearest = difflib.get_close_matches(key, {*known, *of_group} - {key}, n=1, cutoff=ALIKE)
    if not nearest or nearest[0] in known:
        return None
    return f"{nearest[0]} of {group}={_choices_with(group, nearest[0].partition('.')[2])[0]}"


def _choices_with(group: str, path: str) -> list[str]:
    """The choices of a group that have a setting, those of the systems first."""
    having = [choice for choice in groups()[group] if path in paths("", settings_of(group, choice))]
    usual = [chosen_by(name).get(group) for name in groups()["system"]]
    return list(dict.fromkeys([*(str(choice) for choice in usual if choice in having), *having]))


def _in_other_choices(key: str, chosen: DictConfig) -> str | None:
    """Which choices of a key's group have it, where the one that is chosen has not."""
    group, _, path = key.partition(".")
    node = OmegaConf.to_container(chosen[group]) if path and group in groups() and group in chosen else None
    if not isinstance(node, dict):
        return None
    having = _choices_with(group, path)
    if not having:
        return None
    here = next((f" ({choice})" for choice in groups()[group] if settings_of(group, choice) == node), "")
    systems = [name for name in groups()["system"] if chosen_by(name).get(group) in having]
    told = " or ".join(f"{group}={choice}" for choice in having[:_MOST_CHOICES])
    beside = f" ({', '.join(f'system={name}' for name in systems[:_MOST_CHOICES])})" if systems else ""
    return f"the {group} that is chosen{here} has none; {told} has it{beside}"


def written_as(config: DictConfig, path: str) -> str:
    """The key at which a setting is written: `memory.ranking.order` is there because `ranking.order` is."""
    node: Any = OmegaConf.to_container(config, resolve=False)
    names = path.split(".")
    for i, name in enumerate(names):
        node = node.get(name) if isinstance(node, dict) else None
        reference = re.fullmatch(r"\$\{([\w.]+)\}", node) if isinstance(node, str) else None
        if reference is not None:
            return written_as(config, ".".join([reference[1], *names[i + 1 :]]))
    return path


def paths(prefix: str, node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for name, child in node.items():
            path = f"{prefix}.{name}" if prefix else str(name)
            yield path
            yield from paths(path, child)


def flat(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
