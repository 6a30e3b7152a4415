"""What torch's own T5 generates: run as a program, in a process of its own, for there is no torch in that of `lcm`.

The search is that of `summarizer=t5`: greedy or beams, no sampling, no penalty but that on length; what a checkpoint's
own generation_config.json asks for beyond that is left out of both.
"""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Task:
    """What torch is to do."""

    folder: str
    """Weights and descriptions as transformers saves them, and nothing else."""
    ids: list[list[int]]
    """The tokens of each text."""
    limit: int
    """Tokens of a summary, at most."""
    beams: list[int]
    length_penalty: float
    threads: int
    start_id: int
    end_ids: list[int]


@dataclass(frozen=True, slots=True)
class Generated:
    """What one width of search gave."""

    ids: list[list[int]]
    """Of each text's summary, without the start and end tokens."""
    seconds: float


def run(task: Task, beside: Path) -> dict[int, Generated]:
    """Have a process generate; by number of beams.

    Raises:
        ModelError: if it fails.
    """
    from lcm.retrieval.embedder.export import run_apart

    asked, answered = beside / "task.json", beside / "generated.json"
    asked.write_text(json.dumps(asdict(task)), encoding="utf-8")
    run_apart(__name__, str(asked), str(answered))
    said: Mapping[str, Any] = json.loads(answered.read_text(encoding="utf-8"))
    return {int(beams): Generated(**one) for beams, one in said.items()}


def _generate(task: Task) -> dict[int, Generated]:
    import torch
    from transformers import AutoModelForSeq2SeqLM, GenerationConfig

    torch.set_num_threads(task.threads)
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(
        task.folder, dtype=torch.float32, local_files_only=True, trust_remote_code=False
    ).eval()
    found = {}
    for beams in task.beams:
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=task.limit,
            num_beams=beams,
            length_penalty=task.length_penalty,
            do_sample=False,
            decoder_start_token_id=task.start_id,
            pad_token_id=model.config.pad_token_id,
            eos_token_id=task.end_ids,
        )
        with torch.inference_mode():
            _summary(model, torch.tensor([task.ids[0]]), task.end_ids)  # the first is slower than any other
            began_s = time.perf_counter()
            summaries = [_summary(model, torch.tensor([ids]), task.end_ids) for ids in task.ids]
        found[beams] = Generated(summaries, time.perf_counter() - began_s)
    return found


def _summary(model: Any, ids: Any, end_ids: Sequence[int]) -> list[int]:
    """Of one text alone, so that nothing is padded."""
    (sequence,) = model.generate(input_ids=ids, attention_mask=ids.new_ones(ids.shape)).tolist()
    tokens: list[int] = sequence[1:]
    ends = [place for place, token in enumerate(tokens) if token in end_ids]
    return tokens[: ends[0]] if ends else tokens


if __name__ == "__main__":
    _task = Task(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    _found = {beams: asdict(one) for beams, one in _generate(_task).items()}
    Path(sys.argv[2]).write_text(json.dumps(_found), encoding="utf-8")
