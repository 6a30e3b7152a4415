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
            PinnedFile("queries.jsonl", "8486803366dd1f06f9a2d5b80fd66e40c67513d5c433a6cea5b9746dff3aa8ec"),
            PinnedFile("transcripts/brook.jsonl", "3c3300ee1f1bc432ccdd4a5704b5319001c999d8db1321f31f131019dba555ed"),
        ),
        bundled=True,
    )
