"""What the choices of guidance protect of messages in which every setting matters."""

from collections import Counter
from dataclasses import replace

from omegaconf import DictConfig

from lcm.protocols.compaction import Guidance
from lcm.records.conversation import ROLES
from pipelines.config import building
from tests.lcm.writing.admission.tables import messages
from tests.support.workspaces import minute

SAID = (
    "You must quote the file and the line in every review.",
    "Never touch the kettle on Mondays.",
    "The team must not merge before noon.",
    "No problem, thanks.",
    "Must have been the wind.",
    "Prefer deterministic operational guidance over generic defaults.",
    "maybe prefer deterministic operational guidance over generic defaults, some of it",
    "Do some prefer deterministic guidance over generic defaults, or something else entirely?",
    "perhaps we should prefer some deterministic defaults",
    "The goats prefer the garden.",
    "We had lunch near the river.",
    " ",
)
"""Rules, small talk that looks like one, texts that only hint, and what is none."""
WEIGHTS = (None, 0.1, 0.3, 0.9)
"""What a message says itself of how stable it is."""


def guided(config: DictConfig) -> object:
    """The shards of every text by every role."""
    guidance: Guidance = building.build(config, "guidance")
    heard = [
        replace(message, role=role, envelope={} if weight is None else {"stability_weight": weight})
        for message in messages(*SAID)
        for role in ROLES
        for weight in WEIGHTS
    ]
    return guidance.shards(heard, "talk", minute(5), incidents=Counter())
