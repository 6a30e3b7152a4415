"""`lcm evaluate PATH ... QUESTIONS`: words that name a user's own sessions and questions, written out as overrides."""

import os
from collections.abc import Sequence
from pathlib import Path

from eval.mirror import is_url, local
from eval.questions.question import ENDINGS
from lcm.errors import LcmError, TranscriptError
from lcm.given import PACKED_ENDINGS
from pipelines.config.composition import quoted

_HOW = "`lcm evaluate PATH ... questions.jsonl`"


def written_out(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command, with the words among them as overrides of `dataset=own`.

    Raises:
        LcmError: if a word names no file, or it is not clear which of them holds the questions.
    """
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
    keys = {one.lstrip("+~").partition("=")[0]: one for one in overrides}
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
    is_path = "/" in argument or Path(argument).suffix in (*ENDINGS, ".json", *PACKED_ENDINGS)
    return _is_there(argument) or (is_path and not _is_override(argument))


def _told_apart(words: Sequence[str]) -> tuple[list[str], str]:
    """The sessions, and the file of questions."""
    found = _of_questions(words)
    if len(found) > 1:
        raise LcmError(
            f"{found[0]} and {found[1]} both look like questions; name one, dataset.questions={found[0]}, beside the "
            "sessions"
        )
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
    from eval.questions.files import looks_like_questions

    return [word for word in words if looks_like_questions(local(word))]


def _is_no_session(path: Path) -> bool:
    if path.suffix not in ENDINGS or not path.is_file():
        return False
    from lcm.transcript.reading import reader_of
    from lcm.transcript.recorded_file import RecordedFile

    try:
        reader_of(RecordedFile(path))
    except TranscriptError:
        return True
    return False
