"""lcm why [RUN] [--json]
lcm why QUESTION [--expect ID] [--run RUN] [budget=N] [--json]

Where does a run lose what was to be found, and why was one message found, or not?

  lcm why runs/a           every judged message in its place: found, ranked late, the stage that lost it, not found by
                           the source, or not to be seen; the places sum to what was missed
  lcm why q014 --expect m3 --run runs/a
                           what became of one message: which branch found it at which rank, what each stage did with it
                           and why, what took its place, what would have kept it, and how the contexts show it

QUESTION is the id of a question, or its words, as far as they name one alone; without ID, what it misses of its
judged messages is told of. What would have kept a message is tried: each stage left out, each limit and the pools made
larger, and the question ranked again.

RUN is a folder that `lcm evaluate` wrote, the newest below runs/ where none is named. The run is made again, step by
step, from the stage cache where that still holds it: a dataset or code that has changed since is refused.

  expect=ID                the id of a message as the dataset has it, or of a document
  budget=N                 tokens of the context that is looked at; else those of the run's own measure
  tracking=mlflow          log the questions that lose most as MLflow traces, each stage a RETRIEVER span
  traces=20                how many
  external.command=[python3,mine.py]
                           allow the program of an external memory, whose run this is; trust=[PACKAGE] allows a class
  --json                   everything as JSON, and nothing else on standard output"""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import polars as pl
from rapidfuzz import fuzz, process

from eval.dataset.dataset import Dataset
from eval.ladder.explanation import Explanation, Shown, explained, shown, with_budget
from eval.ladder.losses import (
    FOUND,
    Asked,
    asked_again,
    counted,
    judged_messages,
    losses,
    most_missed,
    retrievals,
    said_messages,
)
from eval.measures.retention import Retention
from eval.run import SUMMARY, folder_kind
from eval.tracking.tracking import Tracking
from lcm.errors import LcmError
from lcm.records.query import Query
from lcm.transcript.passages import utterance
from pipelines.config import building, composition
from pipelines.config.arguments import RUNS_COMMAND, CommandArguments, told_apart
from pipelines.steps.runs import RepeatedRun, repeated_run
from pipelines.steps.sides import EVALUATED
from pipelines.views.output import output
from pipelines.views.progress import progress
from pipelines.views.terminal import say, tell_json
from pipelines.views.why_record import explanation_record, losses_record
from pipelines.views.why_table import show_explanation, show_losses

_NEAR, _NEAR_ID = 60.0, 80.0
"""Likeness, of 100, from which words or an id are offered as meant."""
_OFFERED = 3
_SHOWN = 60


def named_question(dataset: Dataset, named: str) -> Query:
    """The question of that id, of those words, or the one alone that begins so.

    Raises:
        LcmError: naming those that are like it, where none or several are meant.
    """
    wanted = _plain(named)
    by_id = [query for query in dataset.queries if query.query_id == named]
    by_text = [query for query in dataset.queries if _plain(query.text) == wanted]
    begins = [query for query in dataset.queries if wanted and _begins(query, named, wanted)]
    meant = by_id or by_text or begins
    if len(meant) == 1:
        return meant[0]
    if meant:
        told, offered = f"names {len(meant)} questions", meant[:_OFFERED]
    else:
        told, offered = "names no question", _like(dataset, wanted)
    options = "; ".join(f"{query.query_id} ({query.text[:_SHOWN]!r})" for query in offered)
    remedy = f"did you mean {options}?" if options else f"name one of its {len(dataset.queries):,} by id or words"
    raise LcmError(f"{named!r} {told} of {dataset.name}: {remedy}")


def named_id(named: str, ids: Collection[str], what: str) -> str:
    """The id, or the one alone that begins so.

    Args:
        what: they are ids of.
    Raises:
        LcmError: naming those that are like it, where none or several are meant.
    """
    meant = [named] if named in ids else [one for one in ids if named and one.startswith(named)]
    if len(meant) == 1:
        return meant[0]
    found = process.extract(named, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR)
    offered = meant[:_OFFERED] or [one for one, _, _ in found]
    told = f"names {len(meant)}" if meant else "names none"
    remedy = f"did you mean {', '.join(offered)}?" if offered else "name an id as the dataset has it"
    raise LcmError(f"expect={named} {told} of {what}: {remedy}")


def _begins(query: Query, named: str, wanted: str) -> bool:
    return query.query_id.startswith(named) or _plain(query.text).startswith(wanted)


def _like(dataset: Dataset, wanted: str) -> list[Query]:
    """Those whose ids are like it, then those whose words are."""
    ids = {i: query.query_id.casefold() for i, query in enumerate(dataset.queries)}
    texts = {i: _plain(query.text) for i, query in enumerate(dataset.queries)}
    found = process.extract(wanted, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR_ID)
    found += process.extract(wanted, texts, scorer=fuzz.WRatio, limit=_OFFERED, score_cutoff=_NEAR)
    return [dataset.queries[i] for i in dict.fromkeys(i for _, _, i in found)][:_OFFERED]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


_OWN = {"expect": "ID", "run": "RUN", "budget": "TOKENS", "traces": "N", RUNS_COMMAND: "[PROGRAM,ARGUMENT]"}
_TRACES = 20
_RUNS = Path("runs")


def main(arguments: Sequence[str]) -> int:
    """`lcm why RUN`, `lcm why QUESTION expect=ID run=RUN`."""
    command = told_apart(_as_settings(arguments), _OWN)
    if foreign := next((one for one in command.overrides if not one.startswith("tracking")), None):
        raise LcmError(f"no such key: {foreign.partition('=')[0]!r}; choose from: {', '.join(_OWN)}, tracking")
    if len(command.words) > 1:
        told = f"{command.words[0]!r} is named already; put a question of several words in quotes"
        raise LcmError(f"{command.words[1]}: {told}")
    word = next(iter(command.words), None)
    is_run = word is None or _is_path(word)
    if is_run and (asked := {"expect", "budget"} & command.settings.keys()):
        raise LcmError(f"{min(asked)}= is of one question: lcm why QUESTION --expect ID --run RUN")
    if not is_run and (command.overrides or "traces" in command.settings):
        raise LcmError("traces are logged of a run, its worst questions: lcm why RUN tracking=mlflow")
    named = word if is_run else command.settings.get("run")
    run = repeated_run(_newest() if named is None else Path(named))
    try:
        if is_run:
            _of_run(run, command)
        else:
            assert word is not None
            _of_question(run, word, command)
    except ValueError as error:  # of a setting that meant something then
        raise LcmError(f"{run.run.folder}: the code has changed since ({error}); run `lcm evaluate` again") from error
    return 0


def _as_settings(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--expect ID` and `--expect=ID` written as `expect=ID`."""
    found, rest = [], list(arguments)
    while rest:
        argument = rest.pop(0)
        name, equals, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("-"):
            found.append(argument)
        elif argument.startswith("--") and name in _OWN:
            if not equals and not rest:
                raise LcmError(f"{argument} has no value: write {argument} {_OWN[name]}")
            found.append(f"{name}={value if equals else rest.pop(0)}")
        else:
            raise LcmError(f"no such option: {argument!r}; `lcm why --help` tells more")
    return found


def _is_path(word: str) -> bool:
    """Whether a word names a folder rather than a question."""
    return (Path(word) / SUMMARY).is_file() or (os.sep in word and " " not in word)


def _newest() -> Path:
    """The run below `runs/` that was written last; none that was made for a comparison alone."""
    found = (path for path in _RUNS.rglob(SUMMARY) if EVALUATED not in path.parents)
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        if folder_kind(path.parent) == "run":
            return path.parent
    raise LcmError("there is no run below runs/: name one, --run FOLDER, or make one with `lcm evaluate`")


def _of_run(run: RepeatedRun, command: CommandArguments) -> None:
    queries, done = judged_messages(run.experiment.evaluator.dataset)["query_id"].n_unique(), 0
    if not queries:
        raise LcmError(f"{run.run.folder} has no judged questions: name one, and what was to be found: --expect ID")
    with progress() as show:

        def count(placed: int) -> None:
            nonlocal done
            done += placed
            show("queries", done, queries)

        rows = losses(run.experiment.evaluator, count, run.require_same)
    if output().is_json:
        tell_json(losses_record(run.run.folder, rows))
    else:
        texts = {query.query_id: query.text for query in run.experiment.evaluator.dataset.queries}
        show_losses(run.run.folder, rows, counted(rows), texts)
    if command.overrides:
        _log(run, rows, command)


def _log(run: RepeatedRun, rows: pl.DataFrame, command: CommandArguments) -> None:
    """Log the questions that lose most."""
    tracking: Tracking = building.build(composition.composed(command.overrides), "tracking")
    named = most_missed(rows, command.number("traces") or _TRACES)
    where = tracking.log_retrievals(run.run.folder, list(retrievals(run.experiment.evaluator, rows, named)))
    if where:
        say(f"Logged: {where}")


def _of_question(run: RepeatedRun, named: str, command: CommandArguments) -> None:
    dataset = run.experiment.evaluator.dataset
    query = named_question(dataset, named)
    here = [one for one in dataset.transcripts if one.workspace_id == query.workspace_id]
    said = {message.message_id: utterance(message) for one in here for message in one.messages}
    told = _told(run, query, command.settings.get("expect"), command.number("budget"))
    if output().is_json:
        records = [explanation_record(run.run.folder, *one) for one in told]
        tell_json(records[0] if "expect" in command.settings else records)
    else:
        for found, contexts in told:
            show_explanation(found, contexts, said)


def _told(
    run: RepeatedRun, query: Query, expected: str | None, budget: int | None
) -> list[tuple[Explanation, list[Shown]]]:
    """What became of a message or document of a question; of none named, of each judged message that it misses."""
    evaluator = run.experiment.evaluator
    said = said_messages(evaluator.dataset, query.workspace_id)
    judged = judged_messages(evaluator.dataset).filter(query_id=query.query_id)["message_id"].to_list()
    if expected is None and not judged:
        raise LcmError(f"question {query.query_id!r} has no judged messages: name what was to be found, --expect ID")
    told: list[tuple[Explanation, list[Shown]]] = []
    with progress() as show:
        show("replaying", 0, 1)
        for asked in asked_again(evaluator, query.workspace_id, {query.query_id}):
            names = judged
            if expected is not None:
                known = [*said, *asked.memory.documents["document_id"]]
                names = [named_id(expected, known, f"the messages and documents of workspace {query.workspace_id!r}")]
            found = [explained(asked, name, said) for name in names]
            run.require_same(found[0].traced)
            missed = [one for one in found if one.place != FOUND]
            told = [(one, _contexts(run, asked, one, budget)) for one in missed or found]
        show("replaying", 1, 1)
    return told


def _contexts(run: RepeatedRun, asked: Asked, found: Explanation, budget: int | None) -> list[Shown]:
    """How the contexts of a question show a message, or the first message of a document."""
    evaluator = run.experiment.evaluator
    measure = next((one for one in evaluator.measures.values() if isinstance(one, Retention)), Retention(budgets=()))
    document = asked.memory.documents.filter(document_id=found.expected)["source_message_ids"].to_list()
    message_id = document[0][0] if document and document[0] else found.expected
    ranked = asked.memory.rank(asked.queries)
    return list(shown(asked, message_id, ranked, evaluator.dataset, with_budget(measure, budget)))
