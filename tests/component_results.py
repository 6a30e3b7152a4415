"""What a component gives over inputs made so that every setting can matter, as text that can be compared."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
from mlflow.tracking import MlflowClient
from omegaconf import DictConfig

from eval.datasets.dataset import QRELS_SCHEMA, Dataset
from eval.experiment import Outcome
from eval.run_folder import write_run
from lcm.protocols import Vectors
from lcm.records import Message, Part, Query, Transcript
from pipelines import configuration
from pipelines.evaluate import _experiment, identity
from tests.workspaces import minute

NOUNS = ("kettle", "garden", "meeting", "goats", "invoice", "database", "bicycle", "kitchen", "lamp", "river")
VERBS = ("broke", "moved", "opened", "painted", "lost", "migrated", "repaired")
SPECIAL = (
    ("user", "The quokka photographs arrived from Perth, quokka after quokka"),
    ("assistant", "The quokka photographs arrived from Perth, quokka after quokka"),  # a tie
    ("user", "The quokka photographs arrived from Perth, quokka after quokkas"),  # nearly one
    ("assistant", "来週の火曜日に東京で会議があります"),
    ("tool", "exit status 1: the zanzibar migration ran out of disk"),
    ("user", "Note that " + "the long report about the harbour mentions cranes and ships and " * 12),
    ("assistant", "To be or not to be, that is it"),
)
"""Role and words: strong words, ties, another script, a tool, a long text, stop words alone."""
TOOL_CALL = Part("tool", tool_call_id="call 1", tool_name="search", tool_input='{"words": "quokka"}')
QUESTIONS = (
    ("quokka photographs from Perth", "strong"),
    ("where is the note about the kettle?", "weak"),
    ("東京で会議", "strong"),
    ("zanzibar disk", "strong"),
    ("to be or not to be", "weak"),
    ("cranes in the harbour reports", "weak"),
    ("who moved the goats near the river", "weak"),
    ("Ada painting kitchens", "weak"),
)
"""Words and category; the first words of each decide what is judged relevant."""


def transcript(ordinary: int = 120) -> Transcript:
    """Ordinary lines that share words, the special ones among them; a new session every 16 messages."""
    lines = [
        ("assistant" if i % 3 else "user", f"Note {i}: the {NOUNS[i % 10]} {VERBS[i % 7]} near the {NOUNS[i * 3 % 10]}")
        for i in range(ordinary)
    ]
    for position, special in enumerate(SPECIAL):
        lines.insert(17 * position + 5, special)
    return Transcript(
        conversation_id="talk",
        messages=tuple(
            Message(
                message_id=f"m{i}",
                role=role,
                content=words,
                session_id=f"session {i // 16}",
                created_at=minute(i),
                author={"user": "Ada", "assistant": "Bo"}.get(role),
                parts=(Part("text", text=words), *([TOOL_CALL] if i == 40 else ())),
            )
            for i, (role, words) in enumerate(lines)
        ),
    )


def dataset() -> Dataset:
    """Each question is judged on the two messages that share most of its characters in pairs."""
    talk = transcript()
    queries = tuple(Query(f"q{i}", text, minute(600), category=kind) for i, (text, kind) in enumerate(QUESTIONS))
    qrels = [
        (query.query_id, message.message_id, 1)
        for query in queries
        for message in sorted(talk.messages, key=lambda message: -_shared(query.text, message.content))[:2]
    ]
    qrels_frame = pl.DataFrame(qrels, schema=QRELS_SCHEMA, orient="row")
    return Dataset("small", "judged by shared characters", "0" * 64, (talk,), queries, qrels_frame)


def _shared(one: str, other: str) -> float:
    pairs = [{text[i : i + 2] for i in range(len(text) - 1)} for text in (one.lower(), other.lower())]
    return len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1])


def outcome(config: DictConfig) -> Outcome:
    """A whole experiment over the small dataset, wired as `lcm evaluate` wires it."""
    experiment = _experiment(config, dataset(), configuration.build(config, "memory"))
    return experiment.run(lambda *_: None)


def _measured(config: DictConfig) -> object:
    found = outcome(config)
    timed = {part: values["n"] for part, values in found.latency.items()}
    return found.run.rows(), found.values.rows(), found.means.rows(), timed


def _loaded(config: DictConfig) -> object:
    loaded: Dataset = configuration.build(config, "dataset").load()
    return loaded.transcripts, loaded.queries, loaded.qrels.rows(), loaded.groups, loaded.notes


def _embedded(config: DictConfig) -> object:
    embedder = configuration.build(config, "embedder")
    texts = ["abc def", "", *(words for _, words in SPECIAL), "a long word list " * 300]
    windows = embedder.windows(texts)
    pieces = [piece for text in windows for piece in text]
    rows = [embedder.embed(pieces + texts[-1:], kind).tobytes() for kind in ("query", "document")]
    return embedder.dim, windows, rows


def _neighbours(config: DictConfig) -> object:
    rng = np.random.default_rng(0)
    vectors, queries = _unit(rng.standard_normal((800, 48))), _unit(rng.standard_normal((20, 48)))
    ids = [f"d{i}" for i in range(len(vectors))]
    index = configuration.build(config, "vector_index").build(48)
    index.add(ids, vectors)
    return index.search(queries, 10), index.search(queries, 10, ids[:700])


def _unit(vectors: np.ndarray) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _found(config: DictConfig) -> object:
    texts = {message.message_id: message.content for message in transcript(300).messages}
    index = configuration.build(config, "text_index").build()
    index.add(list(texts), list(texts.values()))
    queries = [text for text, _ in QUESTIONS]
    return index.search(queries, 10), index.search(queries, 10, list(texts)[:200])


def _logged(config: DictConfig) -> object:
    """The database and the experiment that hold the run afterwards."""
    database = Path(config.tracking.uri.removeprefix("sqlite:///"))
    folder = database.parent / "run"
    write_run(folder, outcome(config), dataset(), identity(config), configuration.resolved_text(config), {})
    said = configuration.build(config, "tracking").log(folder)
    client = MlflowClient(config.tracking.uri)
    run = client.get_run(re.search(r"run (\w+)", said)[1])
    return database.name, client.get_experiment(run.info.experiment_id).name


RESULTS: Mapping[str, Callable[[DictConfig], object]] = {
    "dataset": _loaded,
    "embedder": _embedded,
    "vector_index": _neighbours,
    "text_index": _found,
    "tracking": _logged,
}
"""What a group gives by itself; any other group shows in a whole experiment."""


@cache
def result(group: str, overrides: Sequence[str]) -> str:
    """What the group gives under these overrides (a tuple of them)."""
    return repr(RESULTS.get(group, _measured)(configuration.composed(overrides)))
