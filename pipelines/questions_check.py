"""lcm questions check FILE PATH ... [KEY=VALUE ...]

Show each question of a file with the text of its evidence in the sessions that it is about; then every line that is
wrong, and the evidence that was not found or stands in several messages, with the nearest ones; then lines of sessions
that were put aside and files that were passed over. Exit code 2 if a question is wrong: `lcm evaluate PATH ... FILE`
would refuse the file.

  lcm questions check questions.jsonl ~/sessions
  lcm questions check questions.csv ~/.claude/projects workspace=folder

  workspace=all          what is searched together: all files, those of a folder, or a file alone
  similarity=0.9         of a quotation to words that are not the same; 1 = but for case and white space
  store=FILE             the store in which `lcm grep` found what the file names as msg#21
  format=auto            of the sessions
  strict=false           true = refuse a session with a line that cannot be read

docs/own_data.md says what a questions file holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eval.dataset.own import Own, problems_of, unused_keys
from eval.questions.evidence import LocatedQuestion, Unresolved
from eval.questions.files import looks_like_questions
from eval.questions.quotation import Place, searched_texts
from lcm.clock import format_instant
from lcm.errors import LcmError
from pipelines.config.arguments import told_apart
from pipelines.views.terminal import say

_KEYS = ("workspace", "similarity", "store", "format", "strict")
_TEXT = 160
_BEFORE = 30


def main(arguments: Sequence[str]) -> int:
    """`lcm questions check FILE PATH ... [KEY=VALUE ...]`."""
    command = told_apart([one.removeprefix("dataset.") for one in arguments], _KEYS, is_configured=False)
    if len(command.words) < 2:
        raise LcmError("name a questions file and the sessions it is about: `lcm questions check FILE PATH ...`")
    file = next((word for word in command.words if looks_like_questions(Path(word).expanduser())), command.words[0])
    settings: dict[str, Any] = {key: command.settings[key] for key in _KEYS if key in command.settings}
    if "similarity" in settings:
        settings["similarity"] = _number(settings["similarity"])
    own = Own([word for word in command.words if word != file], file, **(settings | {"strict": command.flag("strict")}))
    read, sessions = own.read()
    located, unresolved = own.located(read, sessions)
    for one in located:
        _show(one)
    problems = problems_of(read, unresolved)
    near = {one.problem: one for one in unresolved}
    for problem in problems:
        say(f"wrong: {problem}")
        if problem in near:
            _show_nearest(near[problem])
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


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise LcmError(f"similarity must be a number, got {text!r}") from error


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


def _show_nearest(unresolved: Unresolved) -> None:
    for place in unresolved.nearest:
        say(f"    nearest: {_said(place, '')}")


def _said(place: Place, quote: str) -> str:
    """A message with its words, from a little before those that are quoted."""
    texts = searched_texts(place.message)
    text = next((text for text in texts if quote and quote in text), texts[0] if texts else "")
    start = max(0, text.find(quote) - _BEFORE) if quote else 0
    return f"{place.message_id} {place.message.role}: {'...' if start else ''}{_line(text[start : start + 4 * _TEXT])}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _TEXT else f"{line[: _TEXT - 3]}..."
