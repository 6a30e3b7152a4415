"""Consent: what the user alone allows, whatever a configuration asks for.

A configuration may come from anybody, and says what is computed. Which packages may bring code, which variables hold
keys, which hosts may be shown one and which commands may be run stands in the environment, to which `lcm` adds what
its command line names.
"""

import importlib
import inspect
import ipaddress
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lcm.redaction import holds_a_key

TRUST, KEYS, HOSTS = "LCM_TRUST", "LCM_ALLOWED_KEYS", "LCM_ALLOWED_HOSTS"
COMMANDS = "LCM_ALLOWED_COMMANDS"
"""The variable of commands that may be run, whole and as a shell would read them, a line each."""
"""Variables of names with commas between: packages whose code may be called, and folders of models whose pickles may be
read; variables and files that hold keys; hosts, HOST:PORT or URLs, whose host and port may be shown keys."""
OWN = ("lcm", "eval", "pipelines")
"""The packages of this project, whose code is called as far as `conf` offers it, and no further."""
PROVIDERS = {
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "OPENAI_API_KEY": ("api.openai.com",),
    "JINA_API_KEY": ("api.jina.ai",),
    "SILICONFLOW_API_KEY": ("api.siliconflow.com", "api.siliconflow.cn"),
    "VOYAGE_API_KEY": ("api.voyageai.com",),
    "PINECONE_API_KEY": ("api.pinecone.io",),
    "DASHSCOPE_API_KEY": ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
}
"""Variables that need no permission -> the hosts of the provider, which need none either, over https."""
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", re.ASCII)


def allowed(variable: str) -> set[str]:
    """The names that one of these variables holds."""
    return {name.strip() for name in os.environ.get(variable, "").strip("[] ").split(",") if name.strip()}


def is_trusted(target: str) -> bool:
    """Whether a dotted path lies in a package of others that the user trusts."""
    return any(target.startswith(f"{package}.") for package in allowed(TRUST).difference(OWN))


def defined(target: str) -> Any:
    """The class or function that a dotted path names, if it is defined in the module that the path names.

    What a module merely imports is none of its own. The module is imported: ask whether it may be before.

    Raises:
        ValueError: if there is none.
    """
    module, _, name = target.rpartition(".")
    if not _PATH.fullmatch(target):
        raise ValueError(f"{target!r} is no dotted path of a class")
    try:
        found = vars(importlib.import_module(module)).get(name)
    except ImportError as error:
        raise ValueError(f"{target!r} names no class: {error}; is its folder on PYTHONPATH?") from error
    if not (inspect.isclass(found) or inspect.isfunction(found)) or found.__module__ != module:
        raise ValueError(f"{target!r} names no class: the module {module} defines no {name}")
    return found


def allowed_commands() -> set[tuple[str, ...]]:
    """The commands that may be run, word by word."""
    found, begun = set[tuple[str, ...]](), ""
    for line in os.environ.get(COMMANDS, "").split("\n"):
        begun += line
        try:
            found.add(tuple(shlex.split(begun)))
        except ValueError:  # a quotation that goes on in the next line, as of `python -c`
            begun += "\n"
        else:
            begun = ""
    return found - {()}


def words_of_command(command: Sequence[str | Mapping[str, Any]]) -> tuple[str, ...]:
    """The words of a command; of a map among them each `KEY: VALUE` is the word KEY=VALUE."""
    words = list[str]()
    for one in command:
        words += [f"{key}={_plain(value)}" for key, value in one.items()] if isinstance(one, Mapping) else [str(one)]
    return tuple(words)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refused_command(command: Sequence[str]) -> str | None:
    """Why a command may not be run, and what allows it; None where it may."""
    if tuple(command) in allowed_commands():
        return None
    told = shlex.join(command)
    return f"{told} is no command that you named: say it on the command line, or {COMMANDS}={shlex.quote(told)}"


def refused_variable(name: str) -> str | None:
    """Why a program that is run may not be given a variable, and what allows it; None where it may."""
    if not holds_a_key(name) or name in allowed(KEYS):
        return None
    return f"{name} may hold a key: say {KEYS}={name} if the program is to have it"


def refused_pickle(path: Path) -> str | None:
    """Why a model's file may not be unpickled, which can run code, and what allows it; None where it may."""
    folder = path.parent.resolve()
    if any(folder.is_relative_to(Path(name).expanduser().resolve()) for name in allowed(TRUST) if "/" in name):
        return None
    remedy = f"save it as model.safetensors, or, if you trust it, say trust=[{folder}] on the command line"
    return f"{path} is a pickle, which may run code: {remedy}"


def refused_key(variable: str, url: str) -> list[str]:
    """Why the key in an environment variable may not be sent to a URL: all of it, each with what allows it."""
    address = urlsplit(url)
    if address.scheme == "https" and address.hostname in PROVIDERS.get(variable, ()):
        return []
    told = []
    if variable not in PROVIDERS and variable not in allowed(KEYS):
        told = [f"api_key_env: {variable} may not be read for a key: say {KEYS}={variable} if it is meant to be one"]
    return [*told, *filter(None, [refused_host(url)])]


def refused_file(path: str, url: str, named_by: str) -> list[str]:
    """Why a key in a file may not be sent to a URL: all of it, each with what allows it.

    Args:
        named_by: the setting that names the file.
    """
    asked = Path(path).expanduser().resolve()
    told = []
    if not any(asked.is_relative_to(Path(name).expanduser().resolve()) for name in allowed(KEYS)):
        # Never the path, in whose place somebody may have written a key.
        remedy = f"name it, or its folder, in {KEYS} if it is meant to hold one"
        told = [f"{named_by}: it may not be read for a key: {remedy}"]
    return [*told, *filter(None, [refused_host(url)])]


def refused_data(url: str) -> str | None:
    """Why what is remembered may not be sent to a URL, without any key, and what allows it; None where it may."""
    address = urlsplit(url)
    is_provider = address.scheme == "https" and any(address.hostname in hosts for hosts in PROVIDERS.values())
    return None if is_provider or _is_this_machine(address.hostname or "") else refused_host(url)


def refused_host(url: str) -> str | None:
    """Why the host of a URL may be sent nothing, and what allows it; None where it may."""
    host = host_of(url)
    named = {host_of(name) if "://" in name else name.lower() for name in allowed(HOSTS)}
    if {host, host.rpartition(":")[0]} & named:
        return None
    return f"{host} is no host that you named: say {HOSTS}={host}, or give the address on the command line"


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(url: str) -> str:
    """HOST:PORT of a URL, the port being the scheme's own where none is written."""
    address = urlsplit(url)
    try:
        port = address.port or {"http": 80, "https": 443}.get(address.scheme, 0)
    except ValueError:  # a port above 65535, which nothing listens at
        port = 0
    return f"{address.hostname}:{port}"
