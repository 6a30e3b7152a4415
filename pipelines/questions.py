"""lcm questions check FILE PATH ... [KEY=VALUE ...]
lcm questions make PATH ... into=FILE [kinds=[KIND,...]] [KEY=VALUE ...]

Questions about recorded sessions, for `lcm evaluate PATH ... FILE`. docs/own_data.md says what a questions file holds,
docs/questions.md what each kind is worth.

  workspace=all          what is searched together: all files, those of a folder, or a file alone
  format=auto            of the sessions
  strict=false           true = refuse a session with a line that cannot be read

`check` shows each question of a file with the text of its evidence in the sessions that it is about; then every line
that is wrong, and the evidence that was not found or stands in several messages, with the nearest ones; then lines of
sessions that were put aside and files that were passed over. Exit code 2 if a question is wrong: `lcm evaluate` would
refuse the file.

  lcm questions check questions.jsonl ~/sessions
  lcm questions check questions.csv ~/.claude/projects workspace=folder

  similarity=0.9         of a quotation to words that are not the same; 1 = but for case and white space
  store=FILE             the store in which `lcm grep` found what the file names as msg#21

`make` makes questions from the sessions themselves, where nobody has asked any. FILE ends in .jsonl, .csv or .parquet.
No model is needed, unless kinds names written. Equal sessions, settings and seed give the same file. Each question says
how it was made, and so does every table that is made of it. --cfg job shows every key.

  lcm questions make ~/sessions into=questions.jsonl
  lcm questions make ~/sessions into=questions.jsonl kinds=[known_item,later_mention] kinds.known_item.n=200 seed=1
  lcm questions make ~/sessions into=questions.jsonl kinds=[written] language_model=openai_compatible

  known_item      rare, self-contained statements, asked for by some of their words
  successor       what was said next
  self_retrieval  a piece of a message finds the message
  later_mention   a message that comes back to something rare, asked an instant before it was said
  tool_result     what a tool gave back, asked for by what it was called with
  written         questions by a language model, without the content words of the message"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from eval.dataset.own import Own, problems_of, unused_keys
from eval.questions.evidence import LocatedQuestion
from eval.questions.files import looks_like_questions, write_questions
from eval.questions.making import make_questions
from eval.questions.question import ENDINGS
from eval.questions.quotation import Place, searched_texts
from eval.questions.sessions import WorkspaceRule, read_workspaces
from eval.table import titled
from lcm.clock import format_instant
from lcm.errors import LcmError
from pipelines.config import building, command_line, contracts
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import brief, kept, say, show_config, show_table, warn

_CHECKED = ("workspace", "similarity", "store", "format", "strict")
_TEXT = 160
_BEFORE = 30
_OURS: Mapping[str, str] = {"into": "", "workspace": "all", "format": "auto", "strict": "false"}


def main(arguments: Sequence[str]) -> int:
    """`lcm questions check FILE PATH ...` and `lcm questions make PATH ... into=FILE`."""
    actions = {"check": _check, "make": _make}
    if arguments[0] not in actions:
        raise LcmError(f"`lcm questions` is followed by check or make, got {arguments[0]!r}")
    return actions[arguments[0]](arguments[1:])


def _check(arguments: Sequence[str]) -> int:
    command = told_apart([one.removeprefix("dataset.") for one in arguments], _CHECKED, is_configured=False)
    if len(command.words) < 2:
        raise LcmError("name a questions file and the sessions it is about: `lcm questions check FILE PATH ...`")
    file = next((word for word in command.words if looks_like_questions(Path(word).expanduser())), command.words[0])
    settings: dict[str, Any] = {key: command.settings[key] for key in _CHECKED if key in command.settings}
    if "similarity" in settings:
        try:
            settings["similarity"] = float(settings["similarity"])
        except ValueError as error:
            raise LcmError(f"similarity must be a number, got {settings['similarity']!r}") from error
    own = Own([word for word in command.words if word != file], file, **(settings | {"strict": command.flag("strict")}))
    read, sessions = own.read()
    located, unresolved = own.located(read, sessions)
    for one in located:
        _show(one)
    problems = problems_of(read, unresolved)
    near = {one.problem: one for one in unresolved}
    for problem in problems:
        say(f"wrong: {problem}")
        for place in near[problem].nearest if problem in near else ():
            say(f"    nearest: {_said(place, '')}")
    for note in (*sessions.notes, *unused_keys(read)):
        say(f"note: {note}")
    unanswerable = sum(one.question.is_unanswerable for one in located)
    messages = sum(len(transcript.messages) for transcript in sessions.transcripts)
    workspaces = len({file.workspace_id for file in sessions.files})
    say(
        f"{len(located) + len(problems)} questions about {messages:,} messages in {workspaces} workspaces: "
        f"{len(located) - unanswerable} with evidence, {unanswerable} unanswerable, {len(problems)} wrong"
    )
    return 2 if problems else 0


def _show(one: LocatedQuestion) -> None:
    question = one.question
    asked = "" if question.asked_at is None else f", asked {format_instant(question.asked_at)}"
    category = "" if question.category == "all" else f", {question.category}"
    say(f"{question.line}: {_line(question.question)}  ({question.question_id}{category}{asked})")
    if question.answer:
        say(f"    answer: {_line(question.answer)}")
    for located in one.located:
        for place in located.places:
            quote = located.evidence.quote or (located.evidence.text if located.how == "quotation" else "")
            say(f"    {located.how}: {_said(place, quote)}")
    if question.is_unanswerable:
        say("    nothing answers it")


def _said(place: Place, quote: str) -> str:
    """A message with its words, from a little before those that are quoted."""
    texts = searched_texts(place.message)
    text = next((text for text in texts if quote and quote in text), texts[0] if texts else "")
    start = max(0, text.find(quote) - _BEFORE) if quote else 0
    return f"{place.message_id} {place.message.role}: {'...' if start else ''}{_line(text[start : start + 4 * _TEXT])}"


def _line(text: str) -> str:
    return brief(" ".join(text.split()), _TEXT)


def _make(arguments: Sequence[str]) -> int:
    command = command_line.read(arguments, "questions make", _OURS)
    if command.look is not None:
        return show_config(command)
    contracts.refuse_unused(command.config, command.overrides)
    ours = {**_OURS, **command.own}
    into = _file(ours["into"])
    for key, choices in (("workspace", get_args(WorkspaceRule)), ("strict", ("false", "true"))):
        if ours[key] not in choices:
            raise LcmError(f"{key} must be one of: {', '.join(sorted(choices))}, got {ours[key]!r}")
    seed = command.config.seed
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise LcmError(f"seed must be a whole number >= 0, got {seed!r}")
    chosen: dict[str, Any] = building.build(command.config, "kinds")
    kinds = {name: kind for name, kind in chosen.items() if kind is not None}
    if not command.words:
        raise LcmError("name the sessions to make questions of: files or folders")
    rule: Any = ours["workspace"]
    sessions = read_workspaces(command.words, ours["format"], ours["strict"] == "true", rule, "own")
    made = make_questions(sessions.transcripts, kinds, seed)
    if not made.questions:
        way = f"in this way ({', '.join(kinds) or 'no kind'})"
        raise LcmError(f"nothing can be asked of these sessions {way}: name more of them, or other kinds")
    write_questions(made.questions, into)
    rows = [(one.kind, one.wanted, one.possible, one.made, one.dropped, one.overlap) for one in made.reports]
    show_table(titled("kind", ("wanted", "possible", "made", "dropped", "overlap"), digits=2), rows)
    say("overlap: the share of a question's content words that its evidence holds, mean over questions")
    for one in made.reports:
        if one.dropped:
            warn(f"{one.dropped} questions of {one.kind} were dropped, for they share words with their source")
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
