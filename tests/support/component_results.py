"""What a component gives over inputs made so that every setting can matter, as text that can be compared."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from mlflow.tracking import MlflowClient
from omegaconf import DictConfig, OmegaConf

from eval.dataset.dataset import QRELS_SCHEMA, REFERENCES_SCHEMA, Dataset
from eval.experiment.experiment import Outcome
from eval.experiment.run_folder import write_run
from lcm.errors import ModelError
from lcm.files import cache_dir
from lcm.memory.memory import Memory
from lcm.protocols import Tiered, Vectors
from lcm.records import MEMORY_CATEGORIES, SCOPE_CLASSES, Candidate, Document, Message, Part, Query, Transcript
from lcm.retrieval.ranking.pipeline import Ranking
from lcm.retrieval.ranking.routed import RoutedRanking
from lcm.writing.admission.intake import Intake
from lcm.writing.extraction.llm import Llm
from pipelines.config import building
from pipelines.steps.point import experiment_of, identity
from tests.lcm.retrieval.decay.frames import NOW, days_ago, rows
from tests.lcm.retrieval.reranker.conftest import batch, frame
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.lcm.writing.admission.tables import TOWARDS, Table, around, at_cosine, candidate, document
from tests.support import kinds, talk
from tests.support.authored_results import authored
from tests.support.clustering_results import clustered
from tests.support.composing import composed
from tests.support.context_results import assembled, compacted, counted, summarized
from tests.support.continuity_results import continued
from tests.support.gating_results import gated
from tests.support.guidance_results import guided
from tests.support.language_models import Listing
from tests.support.local_server import served
from tests.support.recall_results import answered, recalled
from tests.support.recovery_results import recovered
from tests.support.roots import groups_of, pipeline_of
from tests.support.session_results import followed
from tests.support.summary_document_results import documented
from tests.support.summary_expansion_results import expanded
from tests.support.workspaces import NOUNS, VERBS, lived_in, minute, questions

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
REFERENCE = "They took notes: a kettle broke, a garden moved, goats were painted near the river, and the disk was full."


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
    references = pl.DataFrame([(talk.conversation_id, None, REFERENCE)], schema=REFERENCES_SCHEMA, orient="row")
    return Dataset(
        "small", "judged by shared characters", "0" * 64, (talk,), queries, qrels_frame, references=references
    )


def _shared(one: str, other: str) -> float:
    pairs = [{text[i : i + 2] for i in range(len(text) - 1)} for text in (one.lower(), other.lower())]
    return len(pairs[0] & pairs[1]) / len(pairs[0] | pairs[1])


def outcome(config: DictConfig) -> Outcome:
    """A whole experiment over the small dataset, wired as `lcm evaluate` wires it."""
    experiment = experiment_of(config, dataset())
    return experiment.run(lambda *_: None)


def _measured(config: DictConfig) -> object:
    found = outcome(config)
    timed = {part: values["n"] for part, values in found.timing.get("latency", {}).items()}
    measured = (found.run, found.values, found.means, *found.frames.values())
    return [frame.rows() for frame in measured], found.sections, timed


def _loaded(config: DictConfig) -> object:
    loaded: Dataset = building.build(config, "dataset").load()
    return loaded.transcripts, loaded.queries, loaded.qrels.rows(), loaded.groups, loaded.notes


def _embedded(config: DictConfig) -> object:
    embedder = building.build(config, "embedder")
    texts = ["abc def", "", *(words for _, words in SPECIAL), "a long word list " * 300]
    windows = embedder.windows(texts)
    pieces = [piece for text in windows for piece in text]
    rows = [embedder.embed(pieces + texts[-1:], kind).tobytes() for kind in ("query", "document")]
    return embedder.dim, windows, rows


def _neighbours(config: DictConfig) -> object:
    rng = np.random.default_rng(0)
    vectors, queries = _unit(rng.standard_normal((800, 48))), _unit(rng.standard_normal((20, 48)))
    ids = [f"d{i}" for i in range(len(vectors))]
    index = building.build(config, "vector_index").build(48, incidents=Counter())
    index.add(ids[:300], vectors[:300])
    index.add(ids[300:], vectors[300:])
    tiers = index.search_tiers(queries, 10) if isinstance(index, Tiered) else None
    return index.search(queries, 10), index.search(queries, 10, ids[:700]), tiers


def _unit(vectors: np.ndarray) -> Vectors:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _found(config: DictConfig) -> object:
    texts = {message.message_id: message.content for message in transcript(300).messages}
    index = building.build(config, "text_index").build()
    index.add(list(texts), list(texts.values()))
    queries = [text for text, _ in QUESTIONS]
    return index.search(queries, 10), index.search(queries, 10, list(texts)[:200])


def _logged(config: DictConfig) -> object:
    """The database and the experiment that hold the run afterwards."""
    database = Path(config.tracking.uri.removeprefix("sqlite:///"))
    folder = database.parent / "run"
    write_run(folder, outcome(config), dataset(), identity(config), building.resolved_text(config), {})
    said = building.build(config, "tracking").log(folder)
    client = MlflowClient(config.tracking.uri)
    run = client.get_run(re.search(r"run (\w+)", said)[1])
    return database.name, client.get_experiment(run.info.experiment_id).name


def _ranked(config: DictConfig) -> object:
    """What the ranking answers over a long life, and of every kind of document; one of several paths also without its
    lexical branch."""
    ranking = building.build(config, "ranking")
    ways = [ranking, replace(ranking, mode="vector")] if isinstance(ranking, RoutedRanking) else [ranking]
    return [
        memory.rank(asked, way).rows()
        for memory, asked in ((_life(), questions()), (_kinds(), kinds.questions()), (_talk(), talk.questions()))
        for way in ways
    ]


def _answered_by_arms(config: DictConfig) -> object:
    arms = {name: arm for name, arm in building.build(config, "arms").items() if hasattr(arm, "rank")}
    return [(name, _life().rank(questions(), arm).rows()) for name, arm in arms.items()]


def _candidates(config: DictConfig) -> object:
    source = building.build(config, "source")
    return [
        source.candidates(part).rows()
        for memory, asked in ((_life(), questions()), (_kinds(), kinds.questions()))
        for part in memory.batches(asked, Ranking(source), None)
    ]


@cache
def _life() -> Memory:
    return lived_in()


@cache
def _talk() -> Memory:
    return talk.workspace()


@cache
def _kinds() -> Memory:
    return kinds.workspace()


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
    judged = _used().with_columns(multiplier=decay.multiplier(), strength=decay.strength())
    return judged.select("multiplier", "strength").rows()


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


def _annotated(config: DictConfig) -> object:
    texts = ("hm", "The meeting is tomorrow", "I prefer green tea", "To fix it, always restart", "Ada's birthday")
    candidates = [Candidate(text, (f"m{i}",)) for i, text in enumerate(texts)]
    return building.build(config, "annotation").annotate(candidates, [minute(0)] * len(texts))


def _extracted(config: DictConfig) -> object:
    extraction = building.build(config, "extraction")
    if isinstance(extraction, Llm):
        extraction = replace(extraction, language_model=Listing())
    return extraction.extract(transcript().messages, incidents=Counter())


DAY = 24 * 60
ADMITTED_BESIDE = (
    (document("nearest", "The lamp", "events", at=-40 * DAY), 0.9),
    (document("second", "The lamp again", "events", at=-30 * DAY), 0.85),
    (document("third", "The lamp anew", "events", at=-20 * DAY), 0.8),
    (document("fourth", "The lamp once more", "events", at=-20 * DAY), 0.75),
    (document("fifth", "The lamp as ever", "events", at=-20 * DAY), 0.7),
    (document("sixth", "The lamp went out", "cases", at=-5 * DAY), 0.5),
)


def _admitted(config: DictConfig) -> object:
    """Action, score, features, and the audit without the settings that it repeats, for a candidate a category."""
    config.language_model = {"_target_": "tests.support.language_models.Weighing"}
    intake = Intake(building.build(config, "admission"), building.build(config, "deduplication"))
    heard = ("The kettle broke on Monday", "nothing of it, " * 300, "and more of nothing, " * 60)
    found = []
    for category in ("cases", *MEMORY_CATEGORIES, "other"):
        one = candidate("The kettle broke on Monday", category, source="m2")
        ((decision, _),) = intake.take_in(
            [one], [TOWARDS], [minute(2)], around(Table().holding(*ADMITTED_BESIDE), *heard), incidents=Counter()
        )
        audit = decision.audit.get("admission", {})
        kept = {name: audit.get(name) for name in ("hint", "utility_reason", "max_similarity")}
        kept |= {name: audit[name] for name in audit if name.endswith("existing_memory_ids")}
        found.append((decision.action, decision.score, decision.features, kept))
    return found


OLD, NEW = "The tea is green and from a shop near the old river", "The tea is green and from a shop near the old bridge"
SAID = "We spoke of editors"
VIM, EMACS = (candidate(f"Editor: {name}", "preferences", content=SAID) for name in ("vim", "emacs"))
TAKEN_IN: tuple[tuple[Sequence[tuple[Document, float]], Sequence[tuple[Candidate, float]]], ...] = (
    # what is known, and what comes in, each at its cosine from one direction
    ((), [(candidate("Ada has goats", "events"), 1.0), (candidate("Ada keeps goats", "events"), 0.9)]),
    ((), [(candidate("Ada has goats", "events"), 1.0), (candidate("Ada keeps goats", "events"), 0.6)]),
    ([(document("d", "Editor: vim", "preferences", content=SAID), 0.97)], [(VIM, 1.0)]),
    ([(document("d", "Editor: vim", "preferences", content=SAID), 0.7)], [(VIM, 1.0)]),
    ([(document("d", "Editor: vim", "preferences", content=SAID), 0.7)], [(EMACS, 1.0)]),
    ([(document("d", "Editor: vim", "preferences", content=SAID), 0.585)], [(EMACS, 1.0)]),
    ([(document("d", OLD, "events"), 0.96)], [(candidate(NEW, "events"), 1.0)]),
    ([(document("d", OLD, "patterns"), 0.7)], [(candidate("Whenever it rains the goats stay", "patterns"), 1.0)]),
    ([(document("d", "Ada, a painter", "profile"), 0.2)], [(candidate("Ada, a sailor", "profile"), 1.0)]),
    (
        [
            (document("d", "A goat", "events"), 0.99),
            (document("e", "A goat", "cases"), 0.98),
            (document("f", "Editor: vim", "preferences", content=SAID), 0.97),
            (document("g", "Editor: joe", "preferences", content=SAID), 0.96),
        ],
        [(VIM, 1.0)],
    ),
)


def _deduplicated(config: DictConfig) -> object:
    """What becomes of each candidate: the action, the document that it is about, the texts that come of it."""
    config.language_model = {"_target_": "tests.support.language_models.Picking"}
    intake = Intake(building.build(config, "admission"), building.build(config, "deduplication"))
    found = []
    for known, arriving in TAKEN_IN:
        table = Table().holding(*known)
        vectors = [at_cosine(cosine) for _, cosine in arriving]
        taken = intake.take_in(
            [one for one, _ in arriving], vectors, [minute(2)] * len(arriving), around(table), incidents=Counter()
        )
        texts = [one.text for one in table.documents.values()]
        found.append(([(decision.action, decision.matched_id) for decision, _ in taken], texts))
    return found


def _scoped(config: DictConfig) -> object:
    scopes = building.build(config, "scopes")
    agents = (None, "ann", "bo")
    return [(scopes.accessible(agent), scopes.readable(agent), scopes.default_write(agent)) for agent in agents]


def _executed(config: DictConfig) -> object:
    """What comes of three items, in any order."""
    return sorted(building.build(config, "executor").map(range, [3, 1, 2]))


def _folded(config: DictConfig) -> object:
    """What compaction leaves of a talk; where summaries are condensed, also of the long ones in which that matters."""
    is_flat = config.compaction._target_.endswith(".Clustering")
    return clustered(config), None if is_flat else compacted(config)


RESULTS: Mapping[str, Callable[[DictConfig], object]] = {
    "admission": lambda config: [_admitted(config), gated(config)],
    "annotation": _annotated,
    "answerer": answered,
    "arms": _answered_by_arms,
    "assembly": lambda config: [assembled(config), continued(config)],
    "authored": authored,
    "compaction": _folded,
    "dataset": _loaded,
    "decay": _decayed,
    "deduplication": _deduplicated,
    "embedder": _embedded,
    "executor": _executed,
    "extraction": _extracted,
    "fusion": _ranked,
    "guidance": guided,
    "language_model": _replied,
    "ranking": _ranked,
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
"""What a group gives by itself; any other group shows in a whole experiment."""


@cache
def result(group: str, choices: tuple[tuple[str, str], ...], settings: tuple[tuple[str, str], ...]) -> str:
    """What the group gives with these choices, and these settings (keys and JSON) in them.

    Settings are no part of a composition, which takes ten times as long as most components.
    """
    pipeline = pipeline_of(group)
    config = composed([f"{one}={choice}" for one, choice in choices if one in groups_of(pipeline)], pipeline)
    for key, value in settings:
        if key.partition(".")[0] in config:  # what stands around is of `lcm evaluate`
            OmegaConf.update(config, key, json.loads(value), merge=False)
    return repr(RESULTS.get(group, _measured)(config))
