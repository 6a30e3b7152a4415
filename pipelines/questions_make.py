"""lcm questions make PATH ... into=FILE [kinds=[KIND,...]] [KEY=VALUE ...]

Make questions from recorded sessions, for `lcm evaluate PATH ... FILE` where nobody has asked any. FILE ends in .jsonl,
.csv or .parquet. No model is needed, unless kinds names written.

  lcm questions make ~/sessions into=questions.jsonl
  lcm questions make ~/sessions into=questions.jsonl kinds=[known_item,later_mention] kinds.known_item.n=200 seed=1
  lcm questions make ~/sessions into=questions.jsonl kinds=[written] language_model=openai_compatible

  known_item      rare, self-contained statements, asked for by some of their words
  successor       what was said next
  self_retrieval  a piece of a message finds the message
  later_mention   a message that comes back to something rare, asked an instant before it was said
  tool_result     what a tool gave back, asked for by what it was called with
  written         questions by a language model, without the content words of the message

  workspace=all   what is searched together: all files, those of a folder, or a file alone
  format=auto     of the sessions
  strict=false    true = refuse a session with a line that cannot be read

Equal sessions, settings and seed give the same file. Each question says how it was made, and so does every table that
is made of it. docs/questions.md tells what each kind is worth. --cfg job shows every key."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from eval.questions.files import write_questions
from eval.questions.making.question_set import KindReport, make_questions
from eval.questions.question import ENDINGS
from eval.questions.sessions import WorkspaceRule, read_workspaces
from lcm.errors import LcmError
from pipelines.config import building, command_line, contracts
from pipelines.views.terminal import kept, say, show_config, show_table, warn

_OURS: Mapping[str, str] = {"into": "", "workspace": "all", "format": "auto", "strict": "false"}
_NUMBERS = ("wanted", "possible", "made", "dropped", "overlap")


def main(arguments: Sequence[str]) -> int:
    """`lcm questions make PATH ... into=FILE [KEY=VALUE ...]`."""
    command = command_line.read(arguments, "questions make", _OURS)
    if command.look is not None:
        return show_config(command)
    contracts.refuse_unused(command.config, command.overrides)
    ours = {**_OURS, **command.own}
    into = _file(ours["into"])
    rule, strict = _choice(ours, "workspace", get_args(WorkspaceRule)), _choice(ours, "strict", ("false", "true"))
    seed = command.config.seed
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise LcmError(f"seed must be a whole number >= 0, got {seed!r}")
    kinds: dict[str, Any] = {
        name: kind for name, kind in building.build(command.config, "kinds").items() if kind is not None
    }
    if not command.words:
        raise LcmError("name the sessions to make questions of: files or folders")
    sessions = read_workspaces(command.words, ours["format"], strict == "true", rule, "own")  # type: ignore[arg-type]
    made = make_questions(sessions.transcripts, kinds, seed)
    if not made.questions:
        raise LcmError(
            f"nothing can be asked of these sessions in this way ({', '.join(kinds) or 'no kind'}): name more of "
            "them, or other kinds"
        )
    write_questions(made.questions, into)
    _show(made.reports)
    for note in sessions.notes:
        say(f"note: {note}")
    kept(Path(into), verb=f"{len(made.questions)} generated questions")
    return 0


def _file(name: str) -> Path:
    if not name:
        raise LcmError("into=FILE is missing: where the questions go, such as into=questions.jsonl")
    path = Path(name).expanduser()
    if path.suffix not in ENDINGS:
        raise LcmError(f"into={name}: a questions file ends in one of {', '.join(ENDINGS)}")
    if not path.parent.is_dir():
        raise LcmError(f"into={name}: there is no folder {path.parent}; make it, or name another")
    if path.exists():
        raise LcmError(f"into={name} is there already: name another file, or remove that one first")
    return path


def _choice(ours: Mapping[str, str], key: str, choices: Sequence[str]) -> str:
    if ours[key] not in choices:
        raise LcmError(f"{key} must be one of: {', '.join(sorted(choices))}, got {ours[key]!r}")
    return ours[key]


def _show(reports: Sequence[KindReport]) -> None:
    rows = [
        (
            one.kind,
            one.wanted,
            one.possible,
            one.made,
            one.dropped,
            "-" if one.overlap is None else f"{one.overlap:.2f}",
        )
        for one in reports
    ]
    show_table(("kind", *_NUMBERS), rows, _NUMBERS)
    say("overlap: the share of a question's content words that its evidence holds, mean over questions")
    for one in reports:
        if one.dropped:
            warn(f"{one.dropped} questions of {one.kind} were dropped, for they share words with their source")
