"""Kinds of talk that differ as users' talk does: what the evidence of a ranking is learnt from, and held to."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

PUBLISHED: Mapping[str, Sequence[str]] = {
    "locomo": ("dataset=locomo", "dataset.categories=[1,2,3,4]"),
    "beam": ("dataset=beam",),
    "beam_500K": ("dataset=beam", "dataset.size=500K"),
    "beam_1M": ("dataset=beam", "dataset.size=1M"),
    "qmsum": ("dataset=qmsum",),
    "longmemeval": ("dataset=longmemeval", "dataset.protocol=all", "dataset.added_questions=false"),
}
"""Two people; a user with an assistant, at three lengths; meetings; a user with an assistant over weeks."""
SESSIONS: Mapping[str, tuple[str, str]] = {
    "coding": ("pi.jsonl", "file"),
    "support": ("tau.jsonl", "file"),
    "swe": ("mixed.jsonl", "file"),
    "codex": ("mixed.jsonl", "all"),
    "chat": ("mixed.jsonl", "file"),
}
"""Kind of recorded session -> the file of `agent_questions` that asks of it, and what shares a workspace. The ids of a
file with several kinds begin with the kind."""
AGENT_QUESTIONS = tuple(SESSIONS)
GROUPS: Mapping[str, Sequence[str]] = {"agents together": AGENT_QUESTIONS}
"""Kinds that are also told of together."""
KINDS = ("locomo", "beam", "qmsum", "longmemeval", *AGENT_QUESTIONS)
EVERY_KIND = (*PUBLISHED, *AGENT_QUESTIONS)
MEASURED_ONLY = ("beam_500K", "beam_1M", "qmsum", "longmemeval")
"""Not learnt from unless asked for: too costly; judged by spans of turns, whose "Mm-hmm" are evidence too, so that its
form is that of no answer; too few questions."""


def overrides(kind: str, folder: Path) -> Sequence[str]:
    """Those that choose a kind's dataset, the first of them `dataset=NAME`.

    Args:
        kind: one of `EVERY_KIND`.
        folder: where a kind's questions are put that share a file with other kinds.
    """
    if kind in PUBLISHED:
        return PUBLISHED[kind]
    root = Path(os.environ["LCM_DATASETS_DIR"])
    name, workspace = SESSIONS[kind]
    questions = root / "agent_questions" / name
    lines = questions.read_text(encoding="utf-8").splitlines()
    if sum(file == name for file, _ in SESSIONS.values()) > 1:
        lines = [line for line in lines if json.loads(line)["question_id"].startswith(f"{kind}-")]
        questions = folder / f"{kind}.jsonl"
        questions.parent.mkdir(parents=True, exist_ok=True)
        questions.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sources = sorted({json.loads(line)["source"] for line in lines})
    paths = ",".join(f"'{root / 'agent_transcripts' / source}'" for source in sources)
    return (
        "dataset=own",
        f"dataset.paths=[{paths}]",
        f"dataset.questions='{questions}'",
        f"dataset.workspace={workspace}",
    )
