"""What a component gives over inputs made so that every setting can matter, as text that can be compared."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from itertools import product, tee, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from mlflow.tracking import MlflowClient
from omegaconf import DictConfig, OmegaConf

from eval.arms import RecordedRun
from eval.dataset.collection import rejudged
from eval.dataset.dataset import Dataset
from eval.experiment.outcome import Outcome, write_run
from lcm.errors import LcmError, ModelError
from lcm.files import cache_dir
from lcm.memory.memory import Memory
from lcm.protocols.models import Vectors
from lcm.protocols.retrieval import Approximate, Columns
from lcm.records.document import SCOPE_CLASSES
from lcm.retrieval.embedder.hashing import Hashing
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.routed import RoutedRanking
from pipelines.config import building
from pipelines.config.building import identity
from pipelines.steps.point import experiment_of
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows
from tests.lcm.retrieval.reranker.conftest import batch, frame
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.lcm.writing.admission.tables import at_cosine
from tests.support import chat, kinds, talk
from tests.support.authored_results import authored
from tests.support.clustering_results import clustered
from tests.support.composing import composed
from tests.support.context_results import assembled, compacted, counted, summarized
from tests.support.continuity_results import continued
from tests.support.embedding_server import EmbeddingServer
from tests.support.external_results import played, reached
from tests.support.gating_results import gated
from tests.support.guidance_results import guided
from tests.support.local_server import said, served
from tests.support.question_results import made
from tests.support.recall_results import answered, recalled
from tests.support.recovery_results import recovered
from tests.support.roots import groups_of, pipeline_of
from tests.support.session_results import followed
from tests.support.small_talk import QUESTIONS, SPECIAL, dataset, transcript
from tests.support.summary_document_results import documented
from tests.support.summary_expansion_results import expanded
from tests.support.workspaces import lived_in, questions
from tests.support.writing_results import admitted, annotated, deduplicated, extracted


def outcome(config: DictConfig) -> Outcome:
    """A whole experiment over the small dataset, wired as `lcm evaluate` wires it."""
    given = dataset() if config.judgements is None else rejudged(dataset(), Path(config.judgements))
    experiment = experiment_of(config, given)
    return experiment.run(lambda *_: None)


def _measured(config: DictConfig) -> object:
    """What is measured; where a model is asked, by one that answers with the last words it is shown."""
    with served(_last_words) if "model" in config.language_model else nullcontext():
        found = outcome(config)
    timed = {part: values["n"] for part, values in found.timing.get("latency", {}).items()}
    measured = (found.run, found.values, found.means, *found.frames.values())
    return [frame.rows() for frame in measured], found.sections, timed


def _last_words(request: Asked) -> Answer:
    *_, last = request.body["messages"][-1]["content"].split("\n")
    shown = json.loads(last)
    is_judge = "references" in shown
    return said(
        json.dumps({"correct": len(shown["answer"]) % 2 == 0} if is_judge else {"answer": shown.get("text", "")})
    )


def _loaded(config: DictConfig) -> object:
    loaded: Dataset = building.build(config, "dataset").load()
    return loaded.transcripts, loaded.queries, loaded.qrels.rows(), loaded.groups, loaded.notes


def _embedded(config: DictConfig) -> object:
    with served(_hashed) if "base_url" in config.embedder else nullcontext([]) as asked:
        embedder = building.build(config, "embedder")
        texts = ["abc def", "", *(words for _, words in SPECIAL), "a long word list " * 300]
        windows = embedder.windows(texts)
        pieces = [piece for text in windows for piece in text]
        try:
            rows = [embedder.embed(pieces + texts[-1:], kind).tobytes() for kind in ("query", "document")]
        except LcmError as error:
            rows = [str(error)]
        price = embedder.price(1000) if "base_url" in config.embedder else None
        return embedder.dim, windows, rows, price, sorted(map(str, asked))


def _hashed(request: Asked) -> Answer:
    """What a server embeds."""
    return EmbeddingServer(Hashing(dim=request.body.get("dimensions", 8)))(request)


def _neighbours(config: DictConfig) -> object:
    rng = np.random.default_rng(0)
    vectors, queries = _unit(rng.standard_normal((800, 48))), _unit(rng.standard_normal((20, 48)))
    ids = [f"d{i}" for i in range(len(vectors))]
    index = building.build(config, "vector_index").build(48, incidents=Counter())
    index.add(ids[:300], vectors[:300])
    index.add(ids[300:], vectors[300:])
    told = index.answers(queries, 10) if isinstance(index, Approximate) else None
    return index.search(queries, 10), index.search(queries, 10, ids[:700]), told


def _unit(vectors: np.ndarray) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _found(config: DictConfig) -> object:
    texts = {message.message_id: message.content for message in transcript(300).messages}
    index = building.build(config, "text_index").build()
    index.add(list(texts), list(texts.values()))
    queries = [text for text, _ in QUESTIONS]
    return index.search(queries, 10), index.search(queries, 10, list(texts)[:200])


def _logged(config: DictConfig) -> object:
    """The database and the experiment that hold the run afterwards, and its name there."""
    database = Path(config.tracking.uri.removeprefix("sqlite:///"))
    folder = database.parent / "run"
    plain = building.resolved(config)
    write_run(folder, outcome(config), dataset(), identity(plain), building.resolved_text(plain), {})
    said = building.build(config, "tracking").log(folder)
    client = MlflowClient(config.tracking.uri)
    run = client.get_run(re.search(r"run (\w+)", said)[1])
    return database.name, client.get_experiment(run.info.experiment_id).name, run.info.run_name


WORKSPACES = ((lived_in, questions), (kinds.workspace, kinds.questions), (talk.workspace, talk.questions))
OF_CHAT = (chat.workspace, chat.questions)


def _ranked(config: DictConfig) -> object:
    """What the ranking answers over a long life, and of every kind of document; one of several paths also without its
    lexical branch."""
    ranking = building.build(config, "ranking")
    ways = [ranking, replace(ranking, mode="vector")] if isinstance(ranking, RoutedRanking) else [ranking]
    return [_opened(make).rank(asked(), way).rows() for make, asked in (*WORKSPACES, OF_CHAT) for way in ways]


def _answered_by_arms(config: DictConfig) -> object:
    arms = {name: arm for name, arm in building.build(config, "arms").items() if hasattr(arm, "rank")}
    recorded = [
        one.ranking(dataset()) for one in building.build(config, "arms").values() if isinstance(one, RecordedRun)
    ]
    ranked = [(name, _opened(lived_in).rank(questions(), arm).rows()) for name, arm in arms.items()]
    return ranked, [one.source.run.rows() for one in recorded]


def _candidates(config: DictConfig) -> object:
    source = building.build(config, "source")
    return [
        source.candidates(part).rows()
        for make, asked in WORKSPACES
        for part in _opened(make).batches(asked(), Ranking(source), None)
    ]


@cache
def _opened(make: Callable[[], Memory]) -> Memory:
    return make()


RERANKED = (
    # document, score, lexical score
    ("strong, refused 0.01", 0.9, 0.9),
    ("strong, liked 0.99", 0.6, 0.8),
    ("strong, silent", 0.85, 0.9),
    ("fair, refused 0.02", 0.8, 0.65),
    ("fair, liked 0.97", 0.5, 0.7),
    ("fair, silent", 0.75, 0.65),
    ("weak, refused 0.03", 0.7, 0.4),
    ("weak, liked 0.95", 0.4, None),
    ("weak, silent", 0.65, 0.4),
    ("found by meaning, silent, and a text of so many words that hardly any model reads it to its end", 0.3, None),
)


def _reranked(config: DictConfig) -> object:
    """Rows after reranking, and what the service was asked; it does not answer the second query."""
    texts = {f"d{i}": text for i, (text, _, _) in enumerate(RERANKED)}
    vectors = {f"d{i}": tuple(at_cosine(i / 5 - 1)[0]) for i in range(len(texts))}
    queries = {"answered": "who?", "unanswered": "and what is lost?"}
    given = frame(
        *((query, f"d{i}", score, lexical) for query in queries for i, (_, score, lexical) in enumerate(RERANKED))
    )
    around_it = batch(queries, dict.fromkeys(queries, (1.0, 0.0)), vectors, texts)
    with served(_liking) as asked:
        after = building.build(config, "reranker")(given, around_it)
    return after.select("query_id", "document_id", "score").rows(), sorted(map(repr, asked))


def _liking(request: Asked) -> Answer:
    """Scores each document by the number it ends in, and leaves out one without; refuses the second query."""
    body = request.body.get("input", request.body)
    if "lost" in body["query"]:
        return Answer(status=400)
    texts = [entry if isinstance(entry, str) else entry["text"] for entry in body.get("documents") or body["texts"]]
    found = [(i, re.search(r"[\d.]+$", text)) for i, text in enumerate(texts)]
    return Answer({"results": [{"index": i, "score": float(number[0])} for i, number in found if number]})


def _replied(config: DictConfig) -> object:
    """Two replies to the same words, all that was asked for them, and how many were kept in the cache."""
    refusals = iter(range(2))

    def busy_at_first(request: Asked) -> Answer:
        if next(refusals, None) is not None:
            return Answer(status=503, headers={"Retry-After": "0"})
        if "sk-refused" in request.headers.get("authorization", ""):
            return Answer(status=401)
        return Answer({"choices": [{"message": {"content": "so it is"}, "finish_reason": "length"}]})

    with served(busy_at_first) as asked:
        model = building.build(config, "language_model")
        replies = [_said(model) for _ in range(2)]
        kept = list((cache_dir() / "replies").glob("*.json"))
    return replies, asked, len(kept)


def _said(model: Any) -> str:
    try:
        return str(model.reply("be short", "is it so?"))
    except ModelError:
        return "no reply"


def _decayed(config: DictConfig) -> object:
    decay = building.build(config, "decay")
    columns = Columns(_used())
    return list(zip(decay.multiplier(columns).tolist(), decay.strength(columns).tolist(), strict=True))


def _used() -> pl.DataFrame:
    """Documents of every age, use, tier, temporal type, importance and scope class."""
    lives = list(
        product(
            (1000.0, 100.0, 10.0, 0.5),
            (0, 1, 6),
            ("core", "working", "peripheral"),
            ("static", "dynamic"),
            (0.2, 0.9),
            SCOPE_CLASSES,
        )
    )
    ages, accesses, tiers, temporal_types, importances, classes = map(list, zip(*lives, strict=True))
    return rows(
        created_at=[days_ago(age) for age in ages],
        last_accessed_at=[days_ago(age / 3) if count else None for age, count in zip(ages, accesses, strict=True)],
        access_count=accesses,
        decay_tier=tiers,
        temporal_type=temporal_types,
        importance=importances,
        scope_class=classes,
    )


def _reinforced(config: DictConfig) -> object:
    """The use of 96 documents after an answer of six."""
    lives = list(product((400.0, 45.0, 27.0, 3.0), (0, 2, 6, 12), ("peripheral", "working"), (0.1, 0.6, 0.95)))
    ages, accesses, tiers, importances = map(list, zip(*lives, strict=True))
    documents = rows(
        created_at=[days_ago(age) for age in ages],
        access_count=accesses,
        decay_tier=tiers,
        importance=importances,
        confidence=importances,
        temporal_type=["dynamic" if importance < 0.5 else "static" for importance in importances],
    )
    reinforcement = building.build(config, "reinforcement")
    return reinforcement.after_recall([f"d{i}" for i in range(90, 96)], documents, NOW).rows()


def _scoped(config: DictConfig) -> object:
    scopes = building.build(config, "scopes")
    agents = (None, "ann", "bo")
    return [(scopes.accessible(agent), scopes.readable(agent), scopes.default_write(agent)) for agent in agents]


def _executed(config: DictConfig) -> object:
    """What comes of three items, in any order."""
    return sorted(building.build(config, "executor").map(range, [3, 1, 2]))


def _folded(config: DictConfig) -> Iterator[object]:
    """What compaction leaves of a talk; where summaries are condensed, also of the long ones in which that matters."""
    yield clustered(config)
    if not config.compaction._target_.endswith(".Clustering"):
        yield from compacted(config)


RESULTS: Mapping[str, Callable[[DictConfig], object]] = {
    "admission": lambda config: [admitted(config), gated(config)],
    "annotation": annotated,
    "answerer": answered,
    "arms": _answered_by_arms,
    "assembly": lambda config: [assembled(config), continued(config)],
    "authored": authored,
    "compaction": _folded,
    "dataset": _loaded,
    "decay": _decayed,
    "deduplication": deduplicated,
    "embedder": _embedded,
    "executor": _executed,
    "external": reached,
    "extraction": extracted,
    "fusion": _ranked,
    "guidance": guided,
    "kinds": made,
    "language_model": _replied,
    "ranking": lambda config: played(config) if config.ranking._target_.endswith(".External") else _ranked(config),
    "recall": recalled,
    "recovery": recovered,
    "reinforcement": _reinforced,
    "reranker": _reranked,
    "scopes": _scoped,
    "session": followed,
    "source": _candidates,
    "summarizer": summarized,
    "summary_documents": documented,
    "summary_expansion": expanded,
    "text_index": _found,
    "token_estimator": counted,
    "tracking": _logged,
    "vector_index": _neighbours,
}
"""What a group gives by itself, one thing or one after another; any other group shows in a whole experiment."""


class Given:
    """What a group gives, as texts, each made when it is first asked for, and once."""

    def __init__(self, found: object) -> None:
        self._texts: Iterator[str] = map(repr, found if isinstance(found, Iterator) else [found])

    def __iter__(self) -> Iterator[str]:
        self._texts, again = tee(self._texts)
        return again

    def differs(self, other: "Given") -> bool:
        return any(one != another for one, another in zip_longest(self, other))


@cache
def result(group: str, choices: tuple[tuple[str, str], ...], settings: tuple[tuple[str, str], ...]) -> Given:
    """What the group gives with these choices, and these settings (keys and JSON) in them.

    Settings are no part of a composition, which takes ten times as long as most components.
    """
    pipeline = pipeline_of(group)
    config = composed([f"{one}={choice}" for one, choice in choices if one in groups_of(pipeline)], pipeline)
    for key, value in settings:
        if key.partition(".")[0] in config:  # what stands around is of `lcm evaluate`
            OmegaConf.update(config, key, json.loads(value), merge=False)
    return Given(RESULTS.get(group, _measured)(config))
