"""What a gate gives: each of its settings must show here."""

from collections import Counter
from dataclasses import replace

from omegaconf import DictConfig

from lcm.records.conversation import ROLES
from pipelines.config import building
from tests.lcm.writing.admission.tables import TOWARDS, Table, candidate, document, messages
from tests.support.workspaces import minute

LONG = "We keep bees and paint boats by the harbour, and nobody minds. " * 14
SAID = (
    f"{LONG}I prefer the window. Fixed it in src/cache.go, which depends on luck!",
    "I am at home and I like the lake",
    "We make bread",
    "Good morning",
)
COSINES = ((0.95, False), (0.78, False), (0.75, False), (0.88, True), (0.81, True), (0.7, True), (0.4, True),
           (0.3, True), (0.2, True))  # fmt: skip
"""Cosine of a turn, and whether it was promoted."""


def gated(config: DictConfig) -> object:
    """Of every text by every role: whether it is promoted, its score and signals, and how stable it is."""
    admission = building.build(config, "admission")
    table = Table().holding(
        *(
            (document(f"d{i}", "the like", role="user", is_durable=is_durable), cosine)
            for i, (cosine, is_durable) in enumerate(COSINES)
        )
    )
    found = []
    for text in SAID:
        for role in ROLES:
            heard = [replace(message, role=role) for message in messages(text)]
            for known in (table, Table()):
                one = admission.assess(candidate(text), TOWARDS, known, heard, minute(5), incidents=Counter())
                found.append((one.is_durable, one.score, dict(one.features), one.audit.get("stability")))
    return found
