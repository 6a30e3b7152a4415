"""What admission and deduplication give over inputs made so that every setting can matter."""

import json
from collections import Counter
from dataclasses import dataclass

import numpy as np
from omegaconf import DictConfig

from lcm.protocols.writing import Admission, Deduplication
from lcm.records.document import MEMORY_CATEGORIES
from pipelines.config import building
from tests.lcm.writing.admission.tables import TOWARDS, Table, at_cosine, candidate, document, messages
from tests.support.workspaces import minute

SAID = (*(f"Long ago somebody spoke of number {i} and of the weather" for i in range(400)), "The red kettle broke")
DAY = 24 * 60


@dataclass
class Counting:
    """Its replies depend on how much it was shown."""

    def reply(self, system: str, prompt: str, is_usable: object = None) -> str:
        shown = json.loads(prompt)
        return json.dumps(
            {
                "utility": len(prompt) % 1000 / 1000,
                "decision": "merge",
                "match_index": len(shown.get("existing", ())),
                "abstract": f"made of {sorted(shown)}",
            }
        )


def assessed(config: DictConfig) -> object:
    """The assessments of candidates of every category, without the audit's copy of the settings."""
    admission: Admission = _with_a_model(config, "admission")
    table = Table().holding(*((document(f"d{i}", "kettle", at=i), 0.8 - i / 12) for i in range(20)))
    said = messages(*SAID)
    found = []
    for category in (*MEMORY_CATEGORIES, "other"):
        for text, vector in (
            ("The red kettle broke", TOWARDS),
            ("Somebody spoke of number 300", TOWARDS),
            ("Goats", None),
        ):
            one = admission.assess(candidate(text, category), vector, table, said, minute(9 * DAY), incidents=Counter())
            compared = [one.audit.get(f"{kind}_existing_memory_ids") for kind in ("matched", "compared")]
            found.append((one.is_admitted, one.score, dict(one.features), one.audit.get("hint"), compared))
    return found


TWELVE = "Ada drinks tea with much milk every single day of her life"
PAIRS = (
    ("Editor: vim", "Editor: vim and nano"),
    ("Editor: vim and nano", "Editor: vim"),
    ("Editor: emacs", "Editor: vim"),
    ("I like tea from Lipton", "I love tea from Lipton"),
    (f"{TWELVE} now", TWELVE),
)
"""A candidate, and what is known."""


def judged(config: DictConfig) -> object:
    """The judgements of candidates beside like documents at every cosine, in the places 0 to 4, and their twins."""
    deduplication: Deduplication = _with_a_model(config, "deduplication")
    found: list[object] = [deduplication.twins(np.concatenate([at_cosine(c) for c in np.linspace(1, -1, 21)]))]
    for category in ("profile", "preferences", "patterns", "events"):
        for text, known in PAIRS:
            one = candidate(text, category, content=text)
            for cosine in np.linspace(1, 0, 41):
                for place in (0, 2, 4) if cosine > 0.9 else (0,):
                    rows = [("x", "cases")] * 5
                    rows[place] = (known, category)
                    table = Table().holding(
                        *((document(f"d{i}", *row, content=row[0]), cosine - i / 1000) for i, row in enumerate(rows))
                    )
                    judgement = deduplication.judge(one, TOWARDS, table, incidents=Counter())
                    merged = judgement.matched and deduplication.merge(judgement.matched, one)
                    found.append((judgement.action, judgement.matched and judgement.matched.document_id, merged))
    return found


def _with_a_model(config: DictConfig, group: str) -> object:
    config.language_model = {"_target_": f"{Counting.__module__}.{Counting.__name__}"}
    return building.build(config, group)
