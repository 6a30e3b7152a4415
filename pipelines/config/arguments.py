"""The arguments of a command: words, settings of its own and overrides told apart, and what the environment adds."""

import difflib
import logging
import os
import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lcm import consent
from lcm.clock import parse_instant
from lcm.errors import LcmError, TranscriptError
from pipelines.config.check import Check
from pipelines.config.conf_folder import EVALUATE, groups, paths
from pipelines.config.overrides import asked, key_of, quoted

_ADDRESS = re.compile(r"[a-z][\w+.-]*://[^\s/?#,\]'\"\\]+", re.IGNORECASE)

RUNS_COMMAND = "external.command"
"""The setting by which a command line allows the program of an external memory; a command that makes a kept run again
takes it for that alone."""
_HOME = re.compile(r"(?<=[=\[,])~(?=/)")
_HOW = "`lcm evaluate PATH ... questions.jsonl`"
_log = logging.getLogger(__name__)
_COMMAND = re.compile(r"\bexternal\.command=(\[[^\]]*\])")


@dataclass(frozen=True, slots=True)
class CommandArguments:
    """What a command works on, its own settings, and overrides of the configuration."""

    words: tuple[str, ...]
    settings: dict[str, str]
    overrides: tuple[str, ...]

    def word(self, otherwise: str) -> str:
        """The one word of a command; what is told of none, and of several, says what it names."""
        if len(self.words) != 1:
            raise LcmError(otherwise)
        return self.words[0]

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self.settings.get(name, "true" if default else "false")
        if value not in ("true", "false"):
            raise LcmError(f"{name} must be true or false, got {value!r}")
        return value == "true"

    def number(self, name: str) -> int | None:
        value = self.settings.get(name)
        if value is None:
            return None
        if not value.isdecimal() or int(value) < 1:
            raise LcmError(f"{name} must be a whole number >= 1, got {value!r}")
        return int(value)

    def instant(self, name: str) -> datetime | None:
        value = self.settings.get(name)
        try:
            return None if value is None else parse_instant(value)
        except ValueError as error:
            raise LcmError(f"{name} must be an ISO 8601 date or instant, got {value!r}") from error

    def names(self, name: str) -> list[str]:
        """The values of a list, in brackets or not."""
        return list(filter(None, map(str.strip, self.settings.get(name, "").strip("[]").split(","))))

    def choice(self, name: str, choices: Sequence[str], default: str) -> str:
        value = self.settings.get(name, default)
        if value not in choices:
            raise LcmError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}")
        return value


def told_apart(arguments: Sequence[str], own: Collection[str] = (), *, is_configured: bool = True) -> CommandArguments:
    """Tell words from settings, the command's own from overrides, where it takes any; a file that is there is a word,
    though its name hold a `=`."""
    words, settings, overrides = [], {}, []
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or Path(argument).exists():
            words.append(argument)
        elif key in own:
            settings[key] = value
        elif near := difflib.get_close_matches(key, own, n=1, cutoff=0.8):
            raise LcmError(f"no such key: {key!r}; did you mean {near[0]}?")
        elif not is_configured:
            raise LcmError(f"no such key: {key!r}; choose from: {', '.join(own)}")
        else:
            overrides.append(argument)
    return CommandArguments(tuple(words), settings, tuple(overrides))


def at_home(argument: str) -> str:
    """An argument with the user's folder within it for `~`, where no shell puts it."""
    return _HOME.sub(str(Path.home()), argument)


@contextmanager
def consented(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Take what a command line allows into the environment, for this command and its workers; gives the rest of it.

    `trust=[mypkg]` is a word of its own, and so is `trust=[FOLDER]` of a model. An address that stands in an argument
    names a host, and what is named as `api_key_env`, `api_key_file` or `profiles` a key: a configuration that asks for
    others is refused. So it is with a command that no `external.command=[PROGRAM,ARGUMENT]` names.

    Raises:
        LcmError: naming what is no name of a package.
    """
    said: dict[str, set[str]] = {name: consent.allowed(name) for name in (consent.TRUST, consent.KEYS, consent.HOSTS)}
    rest, commands = [], consent.allowed_commands()
    for argument in map(at_home, arguments):
        key, equals, value = argument.partition("=")
        names = [name.strip(" '\"") for name in value.strip("[]").split(",")]
        if key == "trust" and equals and not Path(argument).exists():
            theirs = {name for name in names if name.isidentifier() and name not in consent.OWN}
            theirs |= {name for name in names if "/" in name and Path(name).expanduser().is_dir()}
            if wrong := [name for name in names if name not in theirs]:
                raise LcmError(f"trust={value}: {wrong[0]!r} is no package of yours; write trust=[PACKAGE]")
            said[consent.TRUST].update(names)
            continue
        if key.rpartition(".")[2] in ("api_key_env", "api_key_file", "profiles"):
            said[consent.KEYS].update(names)
        said[consent.HOSTS].update(consent.host_of(address) for address in _ADDRESS.findall(argument))
        commands.update(_commands(argument))
        rest.append(argument)
    before = {name: os.environ.get(name) for name in (*said, consent.COMMANDS)}
    os.environ.update({name: ",".join(sorted(names)) for name, names in said.items() if names})
    if commands:
        os.environ[consent.COMMANDS] = "\n".join(map(shlex.join, sorted(commands)))
    try:
        yield rest
    finally:
        for name, value_before in before.items():
            if value_before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value_before


def _commands(argument: str) -> Iterator[tuple[str, ...]]:
    """The commands that an argument names, as Hydra reads them; what it cannot read is refused when it is composed."""
    for named in _COMMAND.findall(argument):
        with suppress(LcmError):
            yield consent.words_of_command(asked(f"command={named}").value)


def written_out(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, with the words among them as overrides of `dataset=own`."""
    words = [one for one in arguments if _is_word(one)]
    if not words:
        return list(arguments)
    if any(map(_is_there, words)):
        words = [one for one in arguments if one in words or not _is_override(one)]
    overrides = [one for one in arguments if one not in words]
    for word in words:
        if not _is_there(word):
            raise LcmError(
                f"{word}: no such file or folder; sessions and questions are named by their paths, settings as "
                f"KEY=VALUE: {_HOW}"
            )
    keys = {key_of(one): one for one in overrides}
    if keys.get("dataset", "dataset=own").partition("=")[2] != "own":
        raise LcmError(f"{words[0]} names sessions of your own, but {keys['dataset']} is chosen: leave one out")
    if "dataset.paths" in keys:
        raise LcmError(f"{words[0]} names sessions, and so does {keys['dataset.paths']}: leave one out")
    if "measures" in keys and "dataset.questions" not in keys and not _of_questions(words):
        return ["dataset=transcripts", f"dataset.paths={quoted(words)}", *overrides]  # it may need no questions
    paths, questions = (words, None) if "dataset.questions" in keys else _told_apart(words)
    if not paths:
        raise LcmError(f"name the sessions that {questions} is about: {_HOW}")
    named = [] if questions is None else [f"dataset.questions={quoted(questions)}"]
    return ["dataset=own", f"dataset.paths={quoted(paths)}", *named, *overrides]


def _is_there(argument: str) -> bool:
    if "://" in argument:
        from eval.mirror import is_url

        if is_url(argument):
            return True  # whoever reads it finds out
    path = os.path.expanduser(argument)  # noqa: PTH111 - which takes any text, as exists does
    return os.path.exists(path)  # noqa: PTH110


def _is_override(argument: str) -> bool:
    is_deletion = argument.startswith("~") and not argument.startswith("~/")
    return "=" in argument or is_deletion


def _is_word(argument: str) -> bool:
    """Whether an argument names a file: it is there, or it is written as a path and as no override.

    Beside one that is there, whatever is no override names a file too.
    """
    if _is_there(argument) or _is_override(argument):
        return _is_there(argument)
    from eval.questions.question import ENDINGS
    from lcm.given import PACKED_ENDINGS

    return "/" in argument or Path(argument).suffix in (*ENDINGS, ".json", *PACKED_ENDINGS)


def _told_apart(words: Sequence[str]) -> tuple[list[str], str]:
    """The sessions, and the file of questions."""
    from eval.mirror import local

    found = _of_questions(words)
    if len(found) > 1:
        named = f"name one, dataset.questions={found[0]}, beside the sessions"
        raise LcmError(f"{found[0]} and {found[1]} both look like questions; {named}")
    if not found and _is_no_session(local(words[-1])):
        found = [words[-1]]  # reading it says what is wrong with it
    if not found:
        named = " ".join(words)
        raise LcmError(
            f"there are no questions: name a file of them last, {_HOW} (docs/own_data.md says what it holds), or let "
            f"`lcm questions make {named} into=questions.jsonl` make some; measures=survival needs none"
        )
    return [word for word in words if word not in found], found[0]


def _of_questions(words: Sequence[str]) -> list[str]:
    """The files that hold questions."""
    from eval.mirror import local
    from eval.questions.files import looks_like_questions

    return [word for word in words if looks_like_questions(local(word))]


def _is_no_session(path: Path) -> bool:
    from eval.questions.question import ENDINGS

    if path.suffix not in ENDINGS or not path.is_file():
        return False
    from lcm.transcript.reading import reader_of
    from lcm.transcript.recorded_file import RecordedFile

    try:
        reader_of(RecordedFile(path))
    except TranscriptError:
        return True
    return False


def environment_overrides(overrides: Sequence[str], pipeline: str = EVALUATE) -> tuple[str, ...]:
    """What the `LCM_*` variables of lossless-claw ask for, as overrides: above every preset, below the command line.

    What cannot be read, what nobody knows, and what the chosen configuration has no key for is told as a warning,
    unless it is another command's.
    """
    if not any(name.startswith("LCM_") for name in os.environ):
        return ()
    from lcm.plugins.settings.environment import unusable, variable_of, yaml_overrides

    for problem in unusable(os.environ):
        _log.warning("%s", problem)
    wanted = yaml_overrides(os.environ)
    if not wanted:
        return ()
    known = set(paths(Check(overrides, pipeline).chosen.config))
    for key in sorted(wanted.keys() - known):
        group = key.partition(".")[0]
        if group in known:
            choices = ", ".join(groups()[group])
            _log.warning("%s has no key %s here: choose another %s of: %s", variable_of(key), key, group, choices)
    return tuple(f"{key}={quoted(value)}" for key, value in wanted.items() if key in known)
