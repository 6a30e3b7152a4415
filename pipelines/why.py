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
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl
from rapidfuzz import fuzz, process

from eval.dataset.dataset import Dataset
from eval.ladder import losses as ladder
from eval.ladder.explanation import DROPPED, FELL, ROSE, STAYED, Explanation, Shown, explained, shown, with_budget
from eval.ladder.losses import FIRST, FOUND, NO_MISS, REASONS
from eval.measures.means import ALL
from eval.measures.retention import Retention
from eval.run import SUMMARY, folder_kind
from eval.table import Column
from eval.tracking.tracking import Tracking
from lcm.errors import LcmError
from lcm.records.query import Query
from lcm.retrieval.ranking.pipeline import SOURCE
from lcm.transcript.passages import utterance
from pipelines.config import building, composition
from pipelines.config.arguments import RUNS_COMMAND, CommandArguments, told_apart
from pipelines.steps.runs import RepeatedRun, repeated_run
from pipelines.steps.sides import EVALUATED
from pipelines.views.output import output
from pipelines.views.progress import progress, working
from pipelines.views.terminal import say, show_table, tell_json

_NEAR, _NEAR_ID = 60.0, 80.0
"""Likeness, of 100, from which words or an id are offered as meant."""
_OFFERED = 3
_LETTERS = 60


def named_question(dataset: Dataset, named: str) -> Query:
    """The question of that id, of those words, or the one alone that begins so; those like it are told otherwise."""
    wanted, queries = _folded(named), dataset.queries
    texts = {i: _folded(query.text) for i, query in enumerate(queries)}
    starts = [query.query_id.startswith(named) or texts[i].startswith(wanted) for i, query in enumerate(queries)]
    by_text = [i for i, text in texts.items() if text == wanted]
    by_id = [i for i, query in enumerate(queries) if query.query_id == named]
    meant = by_id or by_text or [i for i, is_begun in enumerate(starts) if wanted and is_begun]
    if len(meant) == 1:
        return queries[meant[0]]
    found = list(meant)
    if not meant:
        ids = {i: query.query_id.casefold() for i, query in enumerate(queries)}
        like = process.extract(wanted, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR_ID)
        like += process.extract(wanted, texts, scorer=fuzz.WRatio, limit=_OFFERED, score_cutoff=_NEAR)
        found = list(dict.fromkeys(i for _, _, i in like))
    options = "; ".join(f"{queries[i].query_id} ({queries[i].text[:_LETTERS]!r})" for i in found[:_OFFERED])
    remedy = f"did you mean {options}?" if options else f"name one of its {len(queries):,} by id or words"
    told = f"names {len(meant)} questions" if meant else "names no question"
    raise LcmError(f"{named!r} {told} of {dataset.name}: {remedy}")


def named_id(named: str, ids: Collection[str], what: str) -> str:
    """The id of what is named, or the one alone that begins so; those like it are told otherwise."""
    meant = [named] if named in ids else [one for one in ids if named and one.startswith(named)]
    if len(meant) == 1:
        return meant[0]
    found = process.extract(named, ids, scorer=fuzz.ratio, limit=_OFFERED, score_cutoff=_NEAR)
    offered = meant[:_OFFERED] or [one for one, _, _ in found]
    told = f"names {len(meant)}" if meant else "names none"
    remedy = f"did you mean {', '.join(offered)}?" if offered else "name an id as the dataset has it"
    raise LcmError(f"expect={named} {told} of {what}: {remedy}")


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


_MEANT = {
    FOUND: f"among the first {FIRST} documents",
    ladder.LATE: f"ranked, and behind the first {FIRST} at every stage",
    SOURCE: "not found by the source",
    **REASONS,
}

_SHOWN, _BESIDE = 200, 60
"""Characters of a text by itself, and of one in a table."""
_MOST_TRIALS, _MOST_TAKEN, _MOST_QUESTIONS = 5, 5, 5
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
    is_run = word is None or (Path(word) / SUMMARY).is_file() or (os.sep in word and " " not in word)
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


def _newest() -> Path:
    """The run below `runs/` that was written last; none that was made for a comparison alone."""
    found = (path for path in _RUNS.rglob(SUMMARY) if EVALUATED not in path.parents)
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        if folder_kind(path.parent) == "run":
            return path.parent
    raise LcmError("there is no run below runs/: name one, --run FOLDER, or make one with `lcm evaluate`")


def _of_run(run: RepeatedRun, command: CommandArguments) -> None:
    queries, done = ladder.judged_messages(run.experiment.evaluator.dataset)["query_id"].n_unique(), 0
    if not queries:
        raise LcmError(f"{run.run.folder} has no judged questions: name one, and what was to be found: --expect ID")
    with progress() as show:

        def count(placed: int) -> None:
            nonlocal done
            done += placed
            show("queries", done, queries)

        rows = ladder.losses(run.experiment.evaluator, count, run.require_same)
    if output().is_json:
        tell_json(losses_record(run.run.folder, rows))
    else:
        texts = {query.query_id: query.text for query in run.experiment.evaluator.dataset.queries}
        show_losses(run.run.folder, rows, ladder.counted(rows), texts)
    if command.overrides:
        tracking: Tracking = building.build(composition.composed(command.overrides), "tracking")
        named = ladder.most_missed(rows, command.number("traces") or _TRACES)
        where = tracking.log_retrievals(run.run.folder, list(ladder.retrievals(run.experiment.evaluator, rows, named)))
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
    said = ladder.said_messages(evaluator.dataset, query.workspace_id)
    judged = ladder.judged_messages(evaluator.dataset).filter(query_id=query.query_id)["message_id"].to_list()
    if expected is None and not judged:
        raise LcmError(f"question {query.query_id!r} has no judged messages: name what was to be found, --expect ID")
    told: list[tuple[Explanation, list[Shown]]] = []
    with working("replaying"):
        for asked in ladder.asked_again(evaluator, query.workspace_id, {query.query_id}):
            names = judged
            if expected is not None:
                known = [*said, *asked.memory.documents["document_id"]]
                names = [named_id(expected, known, f"the messages and documents of workspace {query.workspace_id!r}")]
            found = [explained(asked, name, said) for name in names]
            run.require_same(found[0].traced)
            missed = [one for one in found if one.place != FOUND]
            told = [(one, _contexts(run, asked, one, budget)) for one in missed or found]
    return told


def _contexts(run: RepeatedRun, asked: ladder.Asked, found: Explanation, budget: int | None) -> list[Shown]:
    """How the contexts of a question show a message, or the first message of a document."""
    evaluator = run.experiment.evaluator
    measure = next((one for one in evaluator.measures.values() if isinstance(one, Retention)), Retention(budgets=()))
    document = asked.memory.documents.filter(document_id=found.expected)["source_message_ids"].to_list()
    message_id = document[0][0] if document and document[0] else found.expected
    ranked = asked.memory.rank(asked.queries)
    return list(shown(asked, message_id, ranked, evaluator.dataset, with_budget(measure, budget)))


def show_losses(
    folder: Path, rows: pl.DataFrame, counts: Mapping[str, Mapping[str, int]], texts: Mapping[str, str]
) -> None:
    """How many judged messages are in each place, by category where they are lost, and the questions that miss most,
    with their words of `texts`."""
    places, total = ladder.places_in_order(rows), len(rows)
    lost = ladder.missed({place: counts[ALL][place] for place in places})
    n, without = sum(lost.values()), sum(counts[ALL].get(place, 0) for place in NO_MISS)
    told = f": {' + '.join(f'{place} {times:,}' for place, times in lost.items())} = {n:,}" if lost else ""
    say(f"{folder}: {n:,} of {total - without:,} judged messages are missed by the first {FIRST} documents{told}")
    if without:
        say(f"{without:,} more are neither found nor missed: their questions have no value")
    lines = [
        (place, counts[ALL][place], counts[ALL][place] / total, _MEANT.get(place, f"lost by the stage {place}"))
        for place in places
    ]
    show_table(("place", Column("messages", "number"), Column("share", "share", 1), "a message there"), lines)
    by_category = [
        (
            name or "-",
            sum(of.values()),
            of.get(FOUND, 0),
            ", ".join(f"{place} {of[place]:,}" for place in places if place in ladder.missed(of)) or "-",
        )
        for name, of in counts.items()
        if name != ALL
    ]
    show_table(("category", Column("judged", "number"), Column("found", "number"), "missed"), by_category)
    if not (worst := ladder.most_missed(rows, _MOST_QUESTIONS)):
        return
    asked = []
    for query_id in worst:
        of = rows.filter(query_id=query_id)
        misses = f"{of.filter(~pl.col('place').is_in([FOUND, *NO_MISS])).height} of {of.height}"
        asked.append((query_id, misses, of["category"][0] or "-", _short(texts.get(query_id, ""), _BESIDE)))
    show_table(("question", "misses", "category", "asks"), asked)
    say(f"next: {shlex.join(['lcm', 'why', worst[0], '--run', str(folder)])}")


def show_explanation(found: Explanation, contexts: Sequence[Shown], said: Mapping[str, str]) -> None:
    """What became of one message, whose words are among `said`: the cause first, then its ladder."""
    say(f"{found.query.query_id} ({found.query.category}): {_short(found.query.text)}")
    say(f"{found.expected}: {_short(said.get(found.expected, ''))}")
    say(f"{found.headline}")
    if found.document_id is not None:
        branches = found.found_by.select("branch", "rank", "score").iter_rows()
        by = [f"{name} at rank {rank} ({score:.3g})" for name, rank, score in branches]
        say(", found by: ".join([f"document {found.document_id}", *([", ".join(by)] if by else [])]))
        if not found.ladder.is_empty():
            _show_ladder(found)
    if not found.taken_by.is_empty():
        say("what took its place")
        taken = (
            (rank, before, document_id, _short(found.texts.get(document_id, ""), _BESIDE))
            for document_id, rank, before in found.taken_by.head(_MOST_TAKEN).iter_rows()
        )
        show_table((Column("rank", "number"), Column("before", "number"), "document", "says"), taken)
    if found.trials:
        keeps = found.trials[0].rank <= FIRST
        say("tried, what would have kept it" if keeps else f"tried, and none lets it be among the first {FIRST}")
        trials = ((trial.change, trial.rank) for trial in found.trials[:_MOST_TRIALS])
        show_table(("change", Column("rank", "number")), trials)
    elif found.is_tried:
        say("tried: no stage left out, limit or pool made larger moves it up")
    elif found.place != FOUND and found.place not in REASONS:
        say("nothing is tried: without the stage that first gives scores the ranking has no order")
    if contexts:
        shown = ((one.budget_tokens, one.tokens, one.how, one.why) for one in contexts)
        show_table((Column("budget", "number"), Column("context", "number"), "shown", "why"), shown)


def _show_ladder(found: Explanation) -> None:
    """The steps that did something, and the names of the others."""
    rows, idle, before = [], [], None
    for row in found.ladder.iter_rows(named=True):
        if row["event"] == STAYED and row["score"] == before:
            idle.append(row["stage"])
        else:
            score = None if row["score"] is None else f"{row['score']:.4g}"
            rows.append((row["stage"], None if score is None else row["rank"], score, _happened(row)))
        before = row["score"]
    show_table(("stage", Column("rank", "number"), Column("score", "number"), "what happened"), rows)
    if idle:
        say(f"left it as it was: {', '.join(idle)}")
    for like_id in found.ladder["like_id"].drop_nulls().unique(maintain_order=True):
        say(f"{like_id}: {_short(found.texts.get(like_id, ''))}")


def _happened(row: Mapping[str, Any]) -> str:
    moved = row["event"]
    if moved in (ROSE, FELL):
        moved = f"{moved} from {row['rank_before']}"
    elif moved == DROPPED and row["score_before"] is not None:
        moved = f"{moved}, from rank {row['rank_before']}"
    like = row["like_id"] or row["stood_for_by"]
    told = [moved, *([row["reason"]] if row["reason"] else []), *([f"like {like}"] if like else [])]
    return "; ".join(told)


def _short(text: str, characters: int = _SHOWN) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= characters else f"{plain[:characters]}..."


def losses_record(folder: Path, rows: pl.DataFrame) -> dict[str, Any]:
    """The places of all judged messages of a run, counted and one by one."""
    counts = ladder.counted(rows)
    return {
        "run": str(folder),
        "first": FIRST,
        "judged": len(rows),
        "missed": sum(ladder.missed(counts[ALL]).values()),
        "places": counts[ALL],
        "categories": {name: of for name, of in counts.items() if name != ALL},
        "messages": rows.to_dicts(),
    }


def explanation_record(folder: Path, found: Explanation, contexts: Sequence[Shown]) -> dict[str, Any]:
    """What became of one message."""
    return {
        "run": str(folder),
        "query_id": found.query.query_id,
        "question": found.query.text,
        **{name: getattr(found, name) for name in ("expected", "headline", "place", "document_id", "rank", "pool")},
        "found_by": found.found_by.drop("query_id", "document_id").to_dicts(),
        "ladder": found.ladder.drop("query_id", "document_id").to_dicts(),
        "taken_by": [{**row, "text": found.texts.get(row["document_id"], "")} for row in found.taken_by.to_dicts()],
        "would_keep": [asdict(trial) for trial in found.trials],
        "contexts": [asdict(one) for one in contexts],
    }
