"""lcm judge RUN ... into=FOLDER [judge=NAME] [from=FILE] [language_model=NAME] [report=true] [KEY=VALUE]

Judge what runs found: the first messages of each run's rankings are pooled, and a page on this machine (127.0.0.1)
shows them one at a time, each with its question and the messages around it: 1 relevant, 2 partly, 3 not, S skip,
U undo. Which run found a message, and where, does not show. Stop whenever you like: the same command goes on.

  lcm judge runs/a runs/b into=qrels                    judge on a page
  lcm judge runs/a runs/b into=qrels judge=bo           a second judge; the report tells how far both agree
  lcm judge runs/a runs/b into=qrels language_model=openai_compatible    a model judges; its replies are recorded
  lcm judge runs/a runs/b into=qrels from=their.qrels   take over TREC qrels
  lcm judge runs/a runs/b into=qrels report=true        tell what is judged, and what follows from it

  depth=10           how many messages of each ranking go into the pool
  arms=system,bm25   whose rankings of each run
  queries=N          pool N queries alone, spread over all
  measure=nDCG@10    what the report estimates
  port=N             of the page; else a free one
  open=false         do not open a browser

FOLDER holds judgements.jsonl (every judgement, a line each), qrels.trec (for other tools, and for `lcm evaluate` with
judgements=FOLDER/qrels.trec) and questions.jsonl (for dataset=own). Where people judged some queries and a model many,
the report gives a prediction-powered interval: people's own, narrower by as much as the model deserves."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from eval.dataset.collection import document_ids, read_trec_qrels
from eval.judging import judgements
from eval.judging.judgements import GRADES, Judgement, JudgementFile, PoweredMean
from eval.judging.session import JudgingSession, ModelJudge
from eval.measures.measure import RunReading
from eval.measures.names import SYSTEM_ARM, is_share
from eval.table import Column
from lcm.errors import LcmError
from pipelines.config import building, composition
from pipelines.config.arguments import CommandArguments, told_apart
from pipelines.config.overrides import quoted
from pipelines.config.presets import repeated_dataset
from pipelines.steps.judged_pool import DEPTH, JudgedPool, now_text, serve
from pipelines.steps.runs import config_of
from pipelines.views.progress import progress
from pipelines.views.terminal import kept, say, show_table, warn

_OURS = ("into", "depth", "arms", "judge", "from", "report", "queries", "measure", "port", "open")
_CONFIDENCE = 0.95
_FEWEST, _ENOUGH = 20, 30
"""Queries judged by people: with fewer than the first no interval is shown, from the second on it is as wide as it
should be."""


def main(arguments: Sequence[str]) -> int:
    """`lcm judge RUN ... into=FOLDER [KEY=VALUE ...]`."""
    command = told_apart(arguments, _OURS)
    if foreign := next((one for one in command.overrides if not one.startswith("language_model")), None):
        raise LcmError(f"no such key: {foreign.partition('=')[0]!r}; choose from: {', '.join(_OURS)}, language_model")
    if "into" not in command.settings:
        raise LcmError("into=FOLDER is missing: the folder that is to hold the judgements")
    if not command.words:
        raise LcmError("name the runs whose rankings are to be judged: folders that `lcm evaluate` wrote")
    into = Path(command.settings["into"]).expanduser()
    arms = command.settings.get("arms", SYSTEM_ARM).strip("[]").split(",")
    depth, queries = command.number("depth") or DEPTH, command.number("queries")
    judging = JudgedPool.of([Path(word) for word in command.words], lambda _: into, arms, depth, queries)
    if command.overrides:
        _by_model(judging, command)
    elif "from" in command.settings:
        _from_file(judging, Path(command.settings["from"]).expanduser(), command.settings.get("judge"))
    elif not command.flag("report"):
        _on_a_page(judging, command)
    judging.export()
    _report(judging, command.settings.get("measure", "nDCG@10"))
    return 0


def _on_a_page(judging: JudgedPool, command: CommandArguments) -> None:
    from eval.judging.page import JudgingPage

    judge = command.settings.get("judge", "me")
    _require_kind(judging.file, judge, "human")
    session = JudgingSession(judging.pool, judging.dataset, judging.file, judge, now_text)
    state = session.state()
    done = f"{state['done']} of {state['total']} messages are judged by {judge}"
    serve(command, lambda port: JudgingPage(session, port), lambda at: f"{done}; judge here, Ctrl-C ends: {at}")


def _by_model(judging: JudgedPool, command: CommandArguments) -> None:
    config = composition.composed(command.overrides)
    model = building.build(config, "language_model")
    named = building.resolved(config)["language_model"].get("model", {}).get("model", "model")
    judge = command.settings.get("judge", str(named))
    _require_kind(judging.file, judge, "model")
    waiting = len(judging.pool) - len([1 for pair in judging.pool.iter_rows() if pair in judging.file.of(judge)])
    without = 0
    grades = ModelJudge(model, judge).judged(judging.pool, judging.dataset, judging.file, now_text)
    with progress() as show:
        for done, has_grade in enumerate(grades, 1):
            show("judging", done, waiting)
            without += not has_grade
    if without:
        warn(f"{without} messages have no grade: the model's replies held none; the same command asks again")


def _from_file(judging: JudgedPool, path: Path, named: str | None) -> None:
    """Take the judgements of a file over: those of the dataset's queries and messages."""
    judge = named or path.stem
    _require_kind(judging.file, judge, "file")
    workspace = {query.query_id: query.workspace_id for query in judging.dataset.queries}
    known = {(place, name) for (place, _), name in document_ids(judging.dataset).items()}
    rows = list(read_trec_qrels(path).iter_rows())
    ours = [row for row in rows if row[0] in workspace and (workspace[row[0]], row[1]) in known]
    if not ours:
        raise LcmError(f"{path} judges no message of this dataset for any query of it")
    if others := len(rows) - len(ours):
        warn(f"{others} of {len(rows)} judgements in {path} are of queries or messages that are not there")
    said, now = judging.file.of(judge), now_text()
    new = [Judgement(query, document, max(grade, 0), judge, "file", "judged", now) for query, document, grade in ours]
    judging.file.add(one for one in new if one.pair not in said or said[one.pair].relevance != one.relevance)


def _require_kind(file: JudgementFile, judge: str, kind: str) -> None:
    if file.judges().get(judge, kind) != kind:
        raise LcmError(f"judge {judge!r} of {file.path} is a {file.judges()[judge]}: name another, judge=NAME")


def _report(judging: JudgedPool, measure: str) -> None:
    file, pool = judging.file, judging.pool
    judged = judgements.qrels_of(file)
    held = len(pool.join(judged, on=["query_id", "document_id"], how="semi"))
    say(f"{held} of {len(pool)} pooled messages of {pool['query_id'].n_unique()} queries are judged")
    rows = []
    for judge, kind in file.judges().items():
        said = list(file.of(judge).values())
        relevant = sum((one.relevance or 0) >= GRADES["relevant"] for one in said)
        others = [sum(one.relevance == n for one in said) for name, n in GRADES.items() if name != "relevant"]
        rows.append((judge, kind, relevant, *others, sum(one.state == "skipped" for one in said)))
    if rows:
        numbers = (Column(name, "number") for name in ("relevant", "partly", "not", "skipped"))
        show_table(("judge", "kind", *numbers), rows)
    both = [(" and ".join(one.judges), one.n, one.equal, one.kappa) for one in judgements.agreements(file)]
    if both:
        show_table(("judges", *(Column(name, "number") for name in ("n", "equal", "Cohen's kappa"))), both)
    _show_estimates(judging, measure)
    if held:
        kept(file.path.parent)
    if held and any(judged["relevance"]):
        by_it = f"judgements={quoted(str(file.path.parent / 'qrels.trec'))}"
        dataset = repeated_dataset(config_of(judging.runs[0]))
        if dataset is None:
            say(f"Evaluate by it: {shlex.quote(by_it)} beside what chose the dataset of {judging.runs[0].folder}")
        else:
            say(f"Evaluate by it: {shlex.join(['lcm', 'evaluate', *dataset, by_it])}")


def _show_estimates(judging: JudgedPool, measure: str) -> None:
    messages = {name: place for place, name in document_ids(judging.dataset).items()}
    rows, fewest = [], _ENOUGH
    for run in judging.runs:
        for arm in judging.arms:
            ranked = run.rankings.filter(arm=arm)
            if ranked.is_empty():
                continue
            reading = RunReading(arm, ranked, run.documents, judging.dataset)
            found = judgements.estimated(measure, reading, messages, judging.pool, list(judging.file), _CONFIDENCE)
            model = "-" if found.model is None else f"{found.model:.3f}"
            weight = "-" if found.both is None else f"{found.both.weight:.2f}"
            people, both = (_cell(one, is_share(measure)) for one in (found.people, found.both))
            rows.append((f"{run.name} {arm}", people, model, both, weight))
            fewest = min([fewest, *(one.n for one in (found.people, found.both) if one is not None)])
    if any(cell != "-" for row in rows for cell in row[1:]):
        say(f"{measure} over the queries whose whole pool is judged [95% interval]")
        columns = ("by people", "by the model", "by both (prediction-powered)", "the model's weight")
        show_table(("run", *(Column(name, "number") for name in columns)), rows)
        if fewest < _FEWEST:
            say(
                f"note: people judged {fewest} queries whole; of fewer than {_FEWEST} an interval would hold the true "
                "mean much less often than it says, so none is shown: [-]"
            )
        elif fewest < _ENOUGH:
            say(f"note: people judged {fewest} queries whole; below {_ENOUGH} these intervals are too narrow")


def _cell(mean: PoweredMean | None, is_share: bool) -> str:
    """A mean with its interval, which of a share lies in [0, 1]; `[-]` where too few queries were judged for one."""
    if mean is None:
        return "-"
    low, high = (max(mean.low, 0.0), min(mean.high, 1.0)) if is_share else (mean.low, mean.high)
    interval = "-" if mean.n < _FEWEST else f"{low:.3f} {high:.3f}"
    others = f"+{mean.others}" if mean.others else ""
    return f"{mean.value:.3f} [{interval}] n={mean.n}{others}"
