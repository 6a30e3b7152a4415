"""lcm why RUN [--json]
lcm why QUESTION --expect ID [--run RUN] [--json]

Where does a run lose what was to be found, and why was one message not found?

  lcm why runs/a           every judged message in its place: found, ranked late, the stage that lost it, not found by
                           the source, or not to be seen; the places sum to what was missed
  lcm why q014 --expect m3 --run runs/a
                           the ladder of a message through the ranking of a question: which branch found it at which
                           rank, and what each stage did with it

RUN is a folder that `lcm evaluate` wrote, the newest below runs/ where none is named. The run is made again, step by
step, from the stage cache where that still holds it: a dataset or code that has changed since is refused.

  expect=ID          the id of a message as the dataset has it, or of a document
  run=RUN
  --json             everything as JSON, and nothing else on standard output"""

from collections.abc import Sequence
from pathlib import Path

from eval.ladder.asking import asked_again
from eval.ladder.ladder import ladders
from eval.ladder.losses import counted, judged_messages, losses
from lcm.errors import LcmError
from pipelines.config.arguments import told_apart
from pipelines.steps.repeated_run import RepeatedRun, repeated_run
from pipelines.views.progress import progress
from pipelines.views.why_table import show_ladders, show_losses

_OWN = ("expect", "run")


def main(arguments: Sequence[str]) -> int:
    """`lcm why RUN`, `lcm why QUESTION expect=ID run=RUN`."""
    command = told_apart(arguments, _OWN, is_configured=False)
    (word,) = command.words
    if "expect" not in command.settings:
        _of_run(repeated_run(Path(word)))
    else:
        _of_question(repeated_run(Path(command.settings["run"])), word, command.settings["expect"])
    return 0


def _of_run(run: RepeatedRun) -> None:
    queries = judged_messages(run.experiment.evaluator.dataset)["query_id"].n_unique()
    done = 0
    with progress() as show:

        def count(placed: int) -> None:
            nonlocal done
            done += placed
            show("queries", done, queries)

        rows = losses(run.experiment.evaluator, count, run.require_same)
    show_losses(rows, counted(rows))


def _of_question(run: RepeatedRun, query_id: str, message_id: str) -> None:
    dataset = run.experiment.evaluator.dataset
    query = next((query for query in dataset.queries if query.query_id == query_id), None)
    if query is None:
        raise LcmError(f"{run.kept.folder} asks no question {query_id!r}")
    judged = judged_messages(dataset).filter(query_id=query_id)
    for asked in asked_again(run.experiment.evaluator, query.workspace_id, {query_id}):
        for found in ladders(asked, judged):
            run.require_same(asked, found.answers)
            show_ladders(found, message_id)
