"""How well guidance is detected, by both frames: the confusion tables of docs/guidance.md.

    [LCM_CORPORA_DIR=~/corpora] .venv/bin/python experiments/guidance_detection.py [dev own test corpora]

Sentences: what a text says first against its label. Corpora (a folder with the JSON files of the guidance corpora that
libravdb memory is tested with): whether a text is guidance; rows that give a stability must reach the threshold too.
Prints numbers only, never a text.
"""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.compaction.guidance.protected import PhraseRules
from lcm.compaction.guidance.scanner import ByteScanner

SENTENCES = Path(__file__).parents[1] / "tests/lcm/compaction/guidance/sentences"
SETS = {"dev": "dev.json", "own": "dev2.json", "test": "test.json"}
LABELS = {"obligation": "obligation", "forbidden": "prohibition", "permitted": "permission", None: "none"}
FRAMES: dict[str, PhraseRules] = {"original": ByteScanner(), "corrected": ClauseRules()}
STABILITY_THRESHOLD = 0.35

Pairs = list[tuple[str, str]]
"""(label, found)."""


class Rates(NamedTuple):
    """Of one class."""

    precision: float
    recall: float


def sentence_pairs(frame: PhraseRules, name: str) -> Pairs:
    rows = json.loads((SENTENCES / SETS[name]).read_text("utf-8"))
    return [(row["label"], LABELS[frame.read(row["text"]).label]) for row in rows]


def corpus_pairs(frame: PhraseRules, folder: Path, prefix: str) -> Pairs:
    """Rows of the files that begin with `deontic` or `tier15`."""
    pairs = []
    for path in sorted(folder.glob(f"{prefix}*.json")):
        for row in json.loads(path.read_text("utf-8")):
            label = row["BehavioralRule"] if prefix == "deontic" else row["ShouldSurviveCompaction"]
            is_stable = row.get("StabilityWeight", 1.0) >= STABILITY_THRESHOLD
            found = is_stable and frame.read(row["Text"]).is_guidance
            pairs.append(("guidance" if label else "none", "guidance" if found else "none"))
    return pairs


def rates(pairs: Pairs) -> dict[str, Rates]:
    """Precision and recall of each class; 0 where nothing was found."""
    counts = Counter(pairs)
    classes = dict.fromkeys(label for label, _ in pairs)
    return {
        name: Rates(
            counts[name, name] / max(1, sum(counts[label, name] for label in classes)),
            counts[name, name] / sum(counts[name, found] for found in classes),
        )
        for name in classes
    }


def table(pairs: Pairs, classes: Iterable[str]) -> str:
    """Rows are labels, columns what was found."""
    counts, scores = Counter(pairs), rates(pairs)
    lines = [
        "| label | " + " | ".join(classes) + " | precision | recall |",
        "|---|" + "---:|" * (len(list(classes)) + 2),
    ]
    for label in classes:
        cells = " | ".join(str(counts[label, found]) for found in classes)
        lines.append(f"| {label} | {cells} | {scores[label].precision:.3f} | {scores[label].recall:.3f} |")
    return "\n".join(lines)


def main(names: list[str]) -> None:
    folder = os.environ.get("LCM_CORPORA_DIR")
    for frame_name, frame in FRAMES.items():
        for name in names:
            if name in SETS:
                pairs = sentence_pairs(frame, name)
                say(f"\n{frame_name}, {name}, {len(pairs)} sentences\n")
                say(table(pairs, list(LABELS.values())))
            elif folder:
                for prefix in ("deontic", "tier15"):
                    pairs = corpus_pairs(frame, Path(folder), prefix)
                    say(f"\n{frame_name}, {prefix} corpora, {len(pairs)} rows\n")
                    say(table(pairs, ["guidance", "none"]))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or [*SETS, "corpora"])
