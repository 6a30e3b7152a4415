"""What extraction, annotation, admission and deduplication give."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from omegaconf import DictConfig

from lcm.records.document import MEMORY_CATEGORIES, Candidate, Document
from lcm.writing.admission.intake import Intake
from lcm.writing.extraction.llm import Llm
from pipelines.config import building
from tests.lcm.writing.admission.tables import TOWARDS, Table, around, at_cosine, candidate, document
from tests.support.agent_talk import agent_talk, said
from tests.support.language_models import Listing
from tests.support.small_talk import transcript
from tests.support.workspaces import minute


def annotated(config: DictConfig) -> object:
    texts = ("hm", "The meeting is tomorrow", "I prefer green tea", "To fix it, always restart", "Ada's birthday")
    candidates = [Candidate(text, (f"m{i}",)) for i, text in enumerate(texts)]
    return building.build(config, "annotation").annotate(candidates, [minute(0)] * len(texts))


def extracted(config: DictConfig) -> object:
    extraction = building.build(config, "extraction")
    if isinstance(extraction, Llm):
        extraction = replace(extraction, language_model=Listing())
    short = (said("so", "user", "So it is mended?"), said("yes", "assistant", "Yes, it is."))
    messages = (*transcript().messages, *agent_talk().messages, *short)
    return extraction.extract(messages, incidents=Counter())


DAY = 24 * 60


ADMITTED_BESIDE = (
    (document("nearest", "The lamp", "events", at=-40 * DAY), 0.9),
    (document("second", "The lamp again", "events", at=-30 * DAY), 0.85),
    (document("third", "The lamp anew", "events", at=-20 * DAY), 0.8),
    (document("fourth", "The lamp once more", "events", at=-20 * DAY), 0.75),
    (document("fifth", "The lamp as ever", "events", at=-20 * DAY), 0.7),
    (document("sixth", "The lamp went out", "cases", at=-5 * DAY), 0.5),
)


def admitted(config: DictConfig) -> object:
    """Action, score, features, and the audit without the settings that it repeats, for a candidate a category."""
    config.language_model = {"_target_": "tests.support.language_models.Weighing"}
    intake = Intake(building.build(config, "admission"), building.build(config, "deduplication"))
    heard = ("The kettle broke on Monday", "nothing of it, " * 300, "and more of nothing, " * 60)
    found = []
    for category in ("cases", *MEMORY_CATEGORIES, "other"):
        both = [candidate(text, category, source="m2") for text in ("The kettle broke on Monday", "Nothing of it")]
        ((decision, _), _) = intake.take_in(
            both,
            [TOWARDS, None],
            [minute(2)] * 2,
            around(Table().holding(*ADMITTED_BESIDE), *heard),
            incidents=Counter(),
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


def deduplicated(config: DictConfig) -> object:
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
