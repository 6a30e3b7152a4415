"""The bundled long session: what a small context must forget and a memory should not."""

from dataclasses import dataclass
from typing import ClassVar

from eval.dataset.card import Card, PinnedFile
from eval.dataset.sample import Sample


@dataclass(frozen=True, slots=True)
class SampleLong(Sample):
    """One invented session of a coding agent, twelve days long, read and judged as the sample is."""

    card: ClassVar[Card] = Card(
        name="sample_long",
        title="one invented session of a coding agent, twelve days long; it shows the tool and proves nothing",
        licence="CC0 1.0",
        origin="written for this project",
        how_to_get="it is bundled",
        files=(
            PinnedFile("queries.jsonl", "ec4f9f03e68629071fb38e2a70650069967f9d03933f95abe5571c2955a2718f"),
            PinnedFile("transcripts/brook.jsonl", "a003cdb20a7f332715abf99cb3fabc8e29b603769ccf51c26546bcd70dbf23ec"),
        ),
        bundled=True,
    )
