"""`lcm PIPELINE`: the one door. Errors are one line and exit code 2, of a full disk 74; `--debug` shows tracebacks,
`--json` answers a program, `--quiet` says no more than where the result lies."""

import ast
import gc
import importlib
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from lcm import __version__
from lcm.files import private
from lcm.redaction import redact_logs, redacted
from pipelines.steps.interruption import INTERRUPTED, end_as_interrupted, exit_code, interruption
from pipelines.views.output import PipeSafeConsole, answering, open_closed_streams, output, tell_beside

if TYPE_CHECKING:
    from pipelines.config.command_line import Command

_WIDTH = 120
"""Letters of a line, as every docstring keeps them."""
_YOUNG = 20_000
"""Objects made until cycles are looked for: looking as often as Python's own 700 does takes a run half a second."""
_RECALL = """
  store=FILE             the store; else what $LCM_DATABASE_PATH names
  conversation=KEY       one conversation, archived ones of that id too; else all
  agent=ID               what that agent may read, by scopes.agent_access; else all
  json=true              everything as JSON

Choices: recall=default,lossless_claw answerer=extractive,llm language_model=..., and their keys: recall.limit=10."""
# Nothing here phones home; no model is fetched but one that `embedder=hub` or `reranker.model` names and is not here.
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
for _name in ("ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
    os.environ.setdefault(_name, "1")

PIPELINES = {
    "evaluate": "evaluate a memory system over recorded transcripts",
    "tune": "search a space of settings for the best, cross-validated by conversation",
    "compare": "hold systems against a baseline: better, worse or cannot tell, and what they cost",
    "regress": "compare a candidate with a baseline, query by query: exit 1 where it got worse",
    "external": "check what a memory of others can do, before an hour is spent on measuring it",
    "transfer": "tell whether a tuned preset holds in an external memory, and which settings were lost on the way",
    "report": "write the page of a run, a sweep, a comparison, a study or a gate",
    "leaderboard": "write a page of runs, systems by dataset, with a manifest of what each was made of",
    "verify": "check the files and the numbers of a leaderboard, making its runs again",
    "why": "tell where a run loses what was to be found, and why one message was not found",
    "serve": "show runs, comparisons and stores in a browser on this machine, and judge there",
    "judge": "judge what runs found, on a page, by a model or a file: qrels, agreement, intervals",
    "export": "write a tuned configuration as a preset, and as the original plugins' own configuration",
    "import": "read a preset or a plugin's configuration back",
    "questions": "check questions of your own against the sessions they are about; make some where there are none",
    "ingest": "take recorded transcripts of any format into a store or a Parquet file",
    "compact": "compact recorded transcripts into stores, many at once, and report on each conversation",
    "doctor": "check a store, and repair what can be worked out anew",
    "grep": "search what was said in a store, and the summaries of it",
    "describe": "tell what is known of a summary or a large file",
    "expand": "read what summaries were made of",
    "expand-query": "have a question answered from what summaries were made of",
    "mcp": "let an agent's program recall what a store holds, by the Model Context Protocol",
    "status": "count what a store holds, and what waits to be done in it",
    "journal": "show what hosts said of their sessions",
    "cache": "show what is kept between runs, and remove what is not worth its room",
    "datasets": "list the datasets: where they are expected, their licence, how to get them",
    "models": "list the T5s that can summarise, and download them",
    "log": "log run folders to MLflow that did not get there",
}
_RECALLING = ("grep", "describe", "expand", "expand-query", "status", "journal")
"""Pipelines that read a store: functions of one module, each with its help."""
_MODULES = {"import": "import_preset", **dict.fromkeys(_RECALLING, "recall")}
"""Pipeline -> its module, where that is not called like it."""
_CONFIGURED = ("evaluate", "tune")
"""Pipelines that take nothing but options and overrides."""
_NEEDS_ARGUMENTS = (
    "judge",
    *("compare", "external", "transfer", "report", "leaderboard", "verify"),
    *("export", "import", "questions", "ingest", "compact", "doctor"),
    *("grep", "describe", "expand", "expand-query", "mcp"),
)
"""Pipelines that tell what they are for where nothing is asked of them."""

_OPTIONS = ("--debug", "--json", "--quiet")
"""That every pipeline takes."""
BAD_INPUT, INTERNAL_ERROR, MACHINE_FAULT = 2, 70, 74


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `lcm` and exit with its code; asked to end (SIGTERM), it clears up as after Ctrl-C."""
    open_closed_streams()
    end_as_interrupted()
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


@private()
def run(arguments: list[str]) -> int:
    """Run one pipeline; returns the exit code."""
    debug, is_json, is_quiet = (option in arguments for option in _OPTIONS)
    arguments = [argument for argument in arguments if argument not in _OPTIONS]
    redact_logs()
    gc.set_threshold(_YOUNG)
    told = logging.StreamHandler()
    told.addFilter(_OncePerReason())
    told.setFormatter(logging.Formatter("lcm: %(message)s"))
    level = logging.DEBUG if debug else logging.ERROR if is_quiet else logging.WARNING
    logging.basicConfig(level=level, handlers=[told])
    if not is_quiet:
        logging.getLogger("lcm.retrieval.embedder").setLevel(logging.INFO)  # an export takes long, a server money
    for noisy in ("matplotlib", "asyncio", "urllib3", "alembic", "mlflow", "git", "filelock"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    try:
        with answering(is_json=is_json, is_quiet=is_quiet):
            try:
                return _answered(arguments, is_json=is_json)
            except (KeyboardInterrupt, Exception) as error:
                return _failed(error, debug=debug)
    except (KeyboardInterrupt, Exception) as error:  # of standard output itself
        return _failed(error, debug=debug)


def _answered(arguments: list[str], *, is_json: bool) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        return tell(usage())
    name, rest = arguments[0], arguments[1:]
    if "--version" in arguments:
        return tell(f"lcm {__version__}")
    if name not in PIPELINES:
        from pipelines.config.check import meant

        return fail(f"no such pipeline: {name!r}; choose one of: {', '.join(PIPELINES)}{meant(name, PIPELINES)}")
    if is_json and name in _RECALLING:  # which have a form of their own for a program
        rest = [*rest, "json=true"]
    return asked(name, rest)


def asked(name: str, arguments: list[str]) -> int:
    """Run a pipeline with the words of a command line, what they consent to and the files that their URLs name at hand;
    returns the exit code."""
    from pipelines.config.arguments import consented

    with consented(arguments) as rest:
        if not any("://" in argument for argument in rest):
            return _run(name, rest)
        from pipelines.steps.urls import mirrored

        with mirrored(name, rest) as placed:
            return _run(name, placed)


def _run(name: str, arguments: list[str]) -> int:
    """Run a pipeline; what is asked for is read and composed before the pipeline and all it needs are imported."""
    if {"-h", "--help"} & set(arguments) or (not arguments and name in _NEEDS_ARGUMENTS):
        return tell(help_of(name))
    command: Command | list[str] = arguments
    if name in _CONFIGURED:
        from pipelines.config.command_line import read, shown

        command = read(arguments, name)
        if command.look is not None:
            return tell(shown(command).rstrip("\n"))
    module = importlib.import_module(f"pipelines.{_MODULES.get(name, name)}")
    code: int = getattr(module, name.replace("-", "_") if name in _RECALLING else "main")(command)
    return code


class _OncePerReason(logging.Filter):
    """Lets a warning of compaction pass once for each reason: the run's table counts how often."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[str, str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if not record.name.startswith("lcm.compaction") or not isinstance(record.args, tuple):
            return True
        said = (str(record.msg), str(record.args[-1:]))
        is_new = said not in self._seen
        self._seen.add(said)
        return is_new


def usage() -> str:
    """The help of `lcm` itself."""
    width = max(map(len, PIPELINES))
    lines = "\n".join(f"  {name:<{width}}  {what}" for name, what in PIPELINES.items())
    return f"""lcm PIPELINE [arguments]: a declarative evaluation harness for the memory of AI agents

{lines}

`lcm PIPELINE --help` tells more; --version. Every pipeline takes
  --json   its result as JSON on standard output, and nothing else there; an error as error and exit_code
  --quiet  nothing but errors, and where the result lies
  --debug  the traceback of an error"""


def tell(text: str) -> int:
    """Print what was asked for, `--quiet` or not; returns the exit code."""
    output().is_quiet = False
    PipeSafeConsole(soft_wrap=True).print(redacted(text), highlight=False, markup=False)
    return 0


def fail(message: str, code: int = BAD_INPUT) -> int:
    """Say on one line of stderr what is wrong, and to a program as its result."""
    output().result = {"error": message, "exit_code": code}
    tell_beside(f"lcm: {message}")
    return code


def _failed(error: BaseException, *, debug: bool) -> int:
    """Say why a command ended; returns the exit code."""
    if ended := interruption(error):
        code = exit_code(ended)
        return fail("interrupted" if code == INTERRUPTED else "terminated", code)
    assert isinstance(error, Exception)
    if debug:
        sys.stderr.write(redacted(traceback.format_exc()))
    from lcm import faults
    from lcm.errors import LcmError

    is_of_machine = faults.is_of_machine(error)
    if isinstance(error, LcmError) and error.__cause__ is None:  # most mistakes, told before anything is imported
        return fail(str(error), MACHINE_FAULT if is_of_machine else BAD_INPUT)
    from pipelines.config.composition import CONFIGURATION_ERRORS, explain

    if is_of_machine:
        return fail(explain(error), MACHINE_FAULT)
    if faults.told(error) or isinstance(error, (LcmError, ValueError, OSError, *CONFIGURATION_ERRORS)):
        return fail(explain(error))
    return fail(f"{type(error).__name__}: {explain(error)} (a defect; --debug shows where)", INTERNAL_ERROR)


def help_of(name: str) -> str:
    """The help of a pipeline, with what several have in common filled in; its module is read, not imported."""
    from pipelines.config.conf_folder import groups, shipped  # here, because no command needs it

    source = Path(__file__).with_name(f"{_MODULES.get(name, name)}.py")
    module = ast.parse(source.read_text(encoding="utf-8"))
    functions = {one.name.replace("_", "-"): one for one in module.body if isinstance(one, ast.FunctionDef)}
    text = ast.get_docstring(functions[name] if name in _RECALLING else module) or ""
    if "$GROUPS" in text:
        chosen = shipped().chosen(name).choices
        lines = (f"{group}: {', '.join(names)}" for group, names in groups().items() if names and group in chosen)
        choices = "\n".join(fill(line, _WIDTH, subsequent_indent="  ", break_on_hyphens=False) for line in lines)
        text = text.replace("$GROUPS", f"{choices}\n")
    return text.replace("\n$RECALL", _RECALL)


if __name__ == "__main__":
    main()
