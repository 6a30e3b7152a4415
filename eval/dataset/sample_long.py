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
            PinnedFile("queries.jsonl", "0b9527545a0a48c8932e96d87e272c64853da10efcd18d4769c79339c1da6c3b"),
            PinnedFile("transcripts/brook.jsonl", "3c3300ee1f1bc432ccdd4a5704b5319001c999d8db1321f31f131019dba555ed"),
        ),
        bundled=True,
    )
