"""Extractive summaries against LEAD: ROUGE on DialogSum and QMSum, at no greater length, as docs/summaries.md gives it.

    LCM_DATASETS_DIR=~/datasets .venv/bin/python experiments/extractive_summaries.py [dialogsum halves parts qmsum]

LEAD-k is the first k turns, speakers included. The summarizer is given the whole text and, as its target, the tokens of
that LEAD. Differences are paired over texts; their intervals are 95 % bootstrap intervals.
"""

import dataclasses
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eval.dataset.dialogsum import Dialogsum
from eval.dataset.qmsum import Qmsum
from eval.measures.memory import ROUGE, rouge
from eval.significance import bootstrap_means
from lcm.compaction.summarizer.extractive import Extractive
from lcm.protocols.models import Embedder, TextKind, Vectors
from lcm.records.conversation import Message
from lcm.records.summary import SummaryRequest
from lcm.token_estimator import Utf16Units
from pipelines.config import building, composition

LEADS = (2, 3)
DRAWS = 40
TOKENS = Utf16Units()
STEPS = {
    "centrality": (0.0, 0.5, 1.0, 2.0),
    "coverage": (0.0, 0.5, 1.0, 2.0),
    "position": (0.0, 0.25, 0.5, 1.0),
    "speaker": (0.0, 0.4, 0.8, 1.2),
    "fullness": (0.0, 0.2, 0.4, 0.8),
    "redundancy": (0.0, 0.2, 0.4),
    "frequency_exponent": (0.4, 0.8, 1.0),
    "cost_exponent": (0.0, 0.3, 0.6),
}


@dataclass(frozen=True, slots=True)
class Remembering:
    """An embedder that embeds each text once."""

    inner: Embedder
    known: dict[str, Vectors] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def dim(self) -> int:
        return self.inner.dim

    def windows(self, texts: Sequence[str]) -> list[list[str]]:
        return self.inner.windows(texts)

    def embed(self, texts: Sequence[str], kind: TextKind) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, self.inner.embed(new, kind), strict=True))
        return np.stack([self.known[text] for text in texts])


@dataclass(frozen=True, slots=True)
class Case:
    """A text in turns, and a summary of it by a person."""

    turns: tuple[str, ...]
    reference: str

    def lead(self, k: int) -> str:
        return "\n".join(self.turns[:k])


def embedder(choice: str) -> Remembering:
    return Remembering(building.build(composition.composed([f"embedder={choice}"]), "embedder"))


def spoken(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(f"{m.author}: {m.content}" if m.author else m.content for m in messages if m.content.strip())


def dialogues() -> list[Case]:
    dataset = Dialogsum().load()
    references = dict(zip(dataset.references["conversation_id"], dataset.references["text"], strict=True))
    return [Case(spoken(t.messages), references[t.conversation_id]) for t in dataset.transcripts]


def meetings(category: str) -> list[Case]:
    """`general`: the whole meeting; `specific`: the turns that are judged relevant to the question."""
    dataset = Qmsum().load()
    judged = set(dataset.qrels.select("query_id", "message_id").iter_rows())
    meeting = {t.workspace_id: t for t in dataset.transcripts}
    references = {(key, query_id): text for key, query_id, text in dataset.references.iter_rows()}
    found = []
    for query in dataset.queries:
        if query.category == category:
            turns, key = meeting[query.workspace_id].messages, meeting[query.workspace_id].conversation_id
            if category == "specific":
                turns = tuple(m for m in turns if (query.query_id, m.message_id) in judged)
            found.append(Case(spoken(turns), references[key, query.query_id if category == "specific" else None]))
    return [case for case in found if case.turns]


def summaries(extractive: Extractive, cases: Sequence[Case], targets: Sequence[int]) -> list[str]:
    requests = [SummaryRequest("\n".join(c.turns), target) for c, target in zip(cases, targets, strict=True)]
    return [result.text for result in extractive.summarize(requests, incidents=Counter())]


def scores(texts: Sequence[str], cases: Sequence[Case]) -> np.ndarray:
    return rouge(texts, [[case.reference] for case in cases]).select(ROUGE).to_numpy() * 100


def length(texts: Sequence[str]) -> str:
    return f"{np.mean(TOKENS.count(texts)):.1f} | {np.mean([len(text.split()) for text in texts]):.1f}"


def beside(values: np.ndarray, others: np.ndarray) -> str:
    """Mean differences and their intervals, as cells."""
    low, high = bootstrap_means(values - others, resamples=10_000, confidence=0.95, seed=0)
    means = (values - others).mean(axis=0)
    return " | ".join(f"{m:+.2f} [{a:+.2f}, {b:+.2f}]" for m, a, b in zip(means, low, high, strict=True))


def head(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns), flush=True)


def versus_leads(cases: Sequence[Case], arms: Sequence[tuple[str, Extractive]]) -> None:
    head("summary", "tokens", "words", *ROUGE, *(f"{name} − LEAD" for name in ROUGE))
    for k in LEADS:
        lead = [case.lead(k) for case in cases]
        base = scores(lead, cases)
        cells = " | ".join(f"{mean:.2f}" for mean in base.mean(axis=0))
        print(f"| LEAD-{k} | {length(lead)} | {cells} | | | |", flush=True)
        for name, extractive in arms:
            texts = summaries(extractive, cases, TOKENS.count(lead))
            values = scores(texts, cases)
            cells = " | ".join(f"{mean:.2f}" for mean in values.mean(axis=0))
            print(f"| {name} | {length(texts)} | {cells} | {beside(values, base)} |", flush=True)


def plain(inner: Embedder) -> Extractive:
    return Extractive(inner, TOKENS, file_operations=False, footer=False)


def dialogsum() -> None:
    """The claim, and what the two lines besides the sentences cost."""
    cases = dialogues()
    print(f"\n## DialogSum, {len(cases)} dialogues\n")
    minilm = plain(embedder("minilm"))
    versus_leads(cases, [("extractive, minilm", minilm), ("extractive, hashing", plain(embedder("hashing")))])
    whole = dataclasses.replace(minilm, file_operations=True, footer=True)
    print("\nWith a target of so many tokens, sentences alone and with the lines on files and on what is left out:\n")
    head(
        "target",
        "tokens, alone",
        "tokens, with lines",
        "of it sentences",
        "with footer",
        *(f"{n}: cost" for n in ROUGE),
    )
    for target in (36, 56, 80, 120):
        alone, full = (summaries(e, cases, [target] * len(cases)) for e in (minilm, whole))
        kept = ["\n".join(line for line in text.split("\n") if not is_extra(line)) for text in full]
        footers = sum("\nExpand for details about: " in text for text in full)
        tokens = " | ".join(f"{np.mean(TOKENS.count(texts)):.1f}" for texts in (alone, full, kept))
        print(
            f"| {target} | {tokens} | {footers} of {len(cases)} | {beside(scores(kept, cases), scores(alone, cases))} |"
        )


def is_extra(line: str) -> bool:
    return line.startswith(("Files: ", "Expand for details about: "))


def halves() -> None:
    """Weights found on one half of the dialogues, measured on the other; the search knows no defaults."""
    cases = dialogues()
    inner = embedder("minilm")
    parts = (cases[::2], cases[1::2])
    print("\n## DialogSum, weights of the other half\n")
    texts = {k: ["" for _ in cases] for k in LEADS}
    for tuned, held_out, start in ((parts[0], parts[1], 1), (parts[1], parts[0], 0)):
        best = tune(plain(inner), tuned)
        print(", ".join(f"{name} {getattr(best, name):g}" for name in STEPS) + "\n")
        for k in LEADS:
            texts[k][start::2] = summaries(best, held_out, TOKENS.count([case.lead(k) for case in held_out]))
    head("summary", "tokens", "words", *(f"{name} − LEAD" for name in ROUGE))
    for k in LEADS:
        lead = [case.lead(k) for case in cases]
        print(f"| beside LEAD-{k} | {length(texts[k])} | {beside(scores(texts[k], cases), scores(lead, cases))} |")


def tune(start: Extractive, cases: Sequence[Case]) -> Extractive:
    """The best of settings drawn at random from `STEPS`: the mean of ROUGE at both lengths decides."""
    targets = {k: TOKENS.count([case.lead(k) for case in cases]) for k in LEADS}

    def quality(extractive: Extractive) -> float:
        return float(np.mean([scores(summaries(extractive, cases, targets[k]), cases).mean() for k in LEADS]))

    rng = np.random.default_rng(0)
    drawn = [
        dataclasses.replace(start, **{name: steps[rng.integers(len(steps))] for name, steps in STEPS.items()})
        for _ in range(DRAWS)
    ]
    return max(drawn, key=quality)


def parts() -> None:
    """What each part of the score is worth: its weight at 0, beside the defaults."""
    cases = dialogues()
    full = plain(embedder("minilm"))
    for k in LEADS:
        targets = TOKENS.count([case.lead(k) for case in cases])
        base = scores(summaries(full, cases, targets), cases)
        print(f"\n## DialogSum, one part left out, at the length of LEAD-{k}\n")
        head("without", *ROUGE)
        for name in STEPS:
            values = scores(summaries(dataclasses.replace(full, **{name: 0.0}), cases, targets), cases)
            print(f"| {name} | {beside(values, base)} |", flush=True)


def qmsum() -> None:
    """Meetings: whole against their general questions, and the judged turns against the specific ones."""
    arms = [("extractive, minilm", plain(embedder("minilm"))), ("extractive, hashing", plain(embedder("hashing")))]
    for category in ("general", "specific"):
        cases = meetings(category)
        print(f"\n## QMSum, {len(cases)} {category} questions\n")
        versus_leads(cases, arms)
        print("\nAt the tokens of the reference, beside the beginning of the text of that length:\n")
        head("summary", "tokens", "words", *ROUGE, *(f"{name} − beginning" for name in ROUGE))
        targets = TOKENS.count([case.reference for case in cases])
        starts = ["\n".join(c.turns)[: 4 * target] for c, target in zip(cases, targets, strict=True)]
        base = scores(starts, cases)
        cells = " | ".join(f"{mean:.2f}" for mean in base.mean(axis=0))
        print(f"| beginning | {length(starts)} | {cells} | | | |", flush=True)
        for name, extractive in arms:
            texts = summaries(extractive, cases, targets)
            values = scores(texts, cases)
            cells = " | ".join(f"{mean:.2f}" for mean in values.mean(axis=0))
            print(f"| {name} | {length(texts)} | {cells} | {beside(values, base)} |", flush=True)


STUDIES: dict[str, Callable[[], None]] = {"dialogsum": dialogsum, "halves": halves, "parts": parts, "qmsum": qmsum}

if __name__ == "__main__":
    for study in sys.argv[1:] or STUDIES:
        STUDIES[study]()
