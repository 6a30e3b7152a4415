"""python -m benchmarks.t5 NAME|FOLDER [texts=FILE] [count=100] [max_new_tokens=64] [prefix=TEXT]

Have torch and lcm summarise a hundred texts, of the bundled sample or a line each of a file, greedily and with four
beams: how many summaries are equal token by token, what int8 changes (equal ones, ROUGE-L to fp32's), and how fast each
is. It ends with 1 if fp32 does not say what torch says. Of a text that is longer the first window is read."""

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, product
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from eval.dataset.sample import Sample
from eval.measures.memory import rouge
from eval.table import Column
from lcm.compaction.summarizer.t5 import T5Model, Window, WindowSummary, windows
from lcm.compaction.summarizer.t5_files import T5Files, find_folder, weights_alone
from lcm.errors import LcmError, ModelError
from lcm.given import read_whole
from lcm.retrieval.embedder.export import Precision
from lcm.retrieval.embedder.session import processors
from pipelines.config.arguments import told_apart
from pipelines.views.progress import progress
from pipelines.views.terminal import say, show_table

BEAMS = (1, 4)
BATCHES = {"fp32": (1, 16), "int8": (1,)}
"""Precision -> batch sizes. With int8 every text is decoded alone, whatever is set."""
CLOSE_CALL_NATS = 1e-4
"""Rounding, padding and batch-mates move a sum of logits by about a hundredth of it."""
_LENGTH_PENALTY = 1.0
_PRECISIONS: tuple[Precision, ...] = ("fp32", "int8")
_STEP = "summarising"
_IN_A_TEXT = 3
"""Messages that follow each other."""

_OF_CHECK = ("texts", "count", "max_new_tokens", "prefix")
_COUNT, _MAX_NEW_TOKENS, _PREFIX = 100, 64, "summarize: "
DIFFERS = 1
"""The exit code where full precision does not say what torch says."""
_NUMBERS = (("beams", 0), ("batch", 0), ("equal", 0), ("close", 0), ("ROUGE-L", 3), ("tokens/s", 1), ("s/summary", 3))
"""Columns of what is checked, and their digits."""

Progress = Callable[[str, int, int], None]
"""Is told what is done, and how much of how much."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which summaries are equal to others, token by token."""

    equal: int
    close: int
    """Others where two choices were nearer than 1e-4 nats, so that rounding decides."""
    unequal: int
    """All others."""


@dataclass(frozen=True, slots=True)
class Result:
    """One way to summarise all texts."""

    by: str
    """`torch`, `fp32`, `int8`."""
    beams: int
    batch_size: int
    agreement: Agreement | None
    """With torch's summaries; None of torch itself."""
    rouge_l: float | None
    """Mean F1 over the words of fp32's summaries, where it is int8's that are held against them."""
    tokens: int
    seconds: float
    texts: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / self.seconds

    @property
    def seconds_per_summary(self) -> float:
        return self.seconds / self.texts


@dataclass(frozen=True, slots=True)
class Checked:
    """What a check found."""

    model: str
    texts: int
    limit: int
    threads: int
    results: tuple[Result, ...]

    @property
    def holds(self) -> bool:
        """Whether full precision says what torch says, wherever rounding does not decide."""
        return all(one.agreement.unequal == 0 for one in self.results if one.by == "fp32" and one.agreement)


def check(model: str, texts: Sequence[str], limit: int, prefix: str, show: Progress) -> Checked:
    """Summarise texts with torch's model and with ours, in every way.

    Args:
        model: as `summarizer.model`; its weights must be there, for torch.
        texts: of each the first window is read.
        limit: tokens of a summary, at most.
        show: is told how many of the ways to summarise are done.
    Raises:
        ModelError: if the model cannot be found, exported or read by torch.
    """
    folder, threads = find_folder(model), processors()
    opened = {name: T5Model.open(T5Files.find(model, name), threads) for name in _PRECISIONS}
    asked = _windows(opened["fp32"], texts, prefix, limit)
    ways = [way for precision in _PRECISIONS for way in product([precision], BEAMS, BATCHES[precision])]
    show(_STEP, 0, 1 + len(ways))
    reference = replace(opened["fp32"], model=_by_torch(folder, threads), threads=ThreadPoolExecutor(1), thread_count=1)
    said = {beams: _timed(reference, asked, beams, 1) for beams in BEAMS}
    results = [
        Result("torch", beams, 1, None, None, one.tokens, one.seconds, len(asked)) for beams, one in said.items()
    ]
    exact: dict[int, list[WindowSummary]] = {}
    for done, (precision, beams, batch_size) in enumerate(ways, start=1):
        show(_STEP, done, 1 + len(ways))
        one = _timed(opened[precision], asked, beams, batch_size)
        exact.setdefault(beams, one.written)
        rouge_l = _rouge_l(one.written, exact[beams]) if precision == "int8" else None
        held = agreement(reference, asked, one.written, said[beams].written, beams)
        results.append(Result(precision, beams, batch_size, held, rouge_l, one.tokens, one.seconds, len(asked)))
    show(_STEP, 1 + len(ways), 1 + len(ways))
    for one_model in (reference, *opened.values()):
        one_model.close()
    return Checked(model, len(asked), limit, threads, tuple(results))


class _Timed(NamedTuple):
    written: list[WindowSummary]
    seconds: float

    @property
    def tokens(self) -> int:
        return sum(len(one.ids) for one in self.written)


def _timed(model: T5Model, asked: Sequence[Window], beams: int, batch_size: int) -> _Timed:
    model.write(asked[:1], beams, _LENGTH_PENALTY, batch_size)  # the first is slower than any other
    began_s = time.perf_counter()
    written = model.write(asked, beams, _LENGTH_PENALTY, batch_size)
    return _Timed(written, time.perf_counter() - began_s)


def agreement(
    reference: T5Model,
    asked: Sequence[Window],
    written: Sequence[WindowSummary],
    said: Sequence[WindowSummary],
    beams: int,
) -> Agreement:
    """Count the summaries that are those of a reference, that differ by a close call, and that differ otherwise."""
    different = [i for i in range(len(asked)) if written[i].ids != said[i].ids]
    close = sum(_gap(reference, asked[i], written[i].ids, said[i].ids, beams) < CLOSE_CALL_NATS for i in different)
    return Agreement(len(asked) - len(different), close, len(different) - close)


def _gap(reference: T5Model, window: Window, one: Sequence[int], other: Sequence[int], beams: int) -> float:
    """The difference that a reference sees in two summaries, in nats: of greedy ones where they part, else whole."""
    end = min(reference.end_ids)
    pair = [[*ids, end][: window.limit] for ids in (one, other)]
    encoded = reference.encode(window.ids)
    ours, theirs = (reference.log_probabilities(encoded, ids) for ids in pair)
    if beams > 1:
        return abs(float(ours.mean() - theirs.mean()))
    parting = next(i for i, (token, another) in enumerate(zip(*pair, strict=False)) if token != another)
    return abs(float(ours[parting] - theirs[parting]))


def _windows(model: T5Model, texts: Sequence[str], prefix: str, limit: int) -> list[Window]:
    found = (windows(text, model.tokenizer, prefix, model.max_input_tokens) for text in texts)
    asked = [Window(of_text[0], limit) for of_text in found if of_text]
    if not asked:
        raise ModelError("there is no text to summarise; name a file with a text on each line, texts=FILE")
    return asked


def _by_torch(folder: Path, threads: int) -> Any:
    """Torch's own model of the weights alone, in the place of optimum's."""
    import torch
    from transformers import AutoModelForSeq2SeqLM

    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as name:
        alone = weights_alone(folder, Path(name))
        return AutoModelForSeq2SeqLM.from_pretrained(
            alone, dtype=torch.float32, local_files_only=True, trust_remote_code=False
        ).eval()


def _rouge_l(written: Sequence[WindowSummary], exact: Sequence[WindowSummary]) -> float:
    """Of texts of which both say nothing it is 1: they say the same."""
    scores = rouge([one.text for one in written], [[one.text] for one in exact])["rougeL"]
    pairs = zip(written, exact, scores, strict=True)
    return mean(1.0 if one.text == other.text else score for one, other, score in pairs)


def sample_texts(count: int) -> list[str]:
    """The first stretches of three messages of the bundled conversations, each a message further on; English first."""
    said = (
        [f"{message.role}: {message.content}" for message in transcript.messages if message.content.strip()]
        for transcript in Sample().load().transcripts
    )
    stretches = ("\n".join(one[at : at + _IN_A_TEXT]) for one in said for at in range(len(one) - _IN_A_TEXT + 1))
    return list(islice(stretches, count))


def texts_of(path: Path, count: int) -> list[str]:
    """The first texts of a file, one on each line.

    Raises:
        LcmError: if it cannot be read, or holds none.
    """
    try:
        lines = read_whole(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as err:
        raise LcmError(f"texts={path} cannot be read ({err}); name a file in UTF-8 with a text on each line") from err
    found = [line.strip() for line in lines if line.strip()][:count]
    if not found:
        raise LcmError(f"texts={path} holds no text; name a file with a text on each line")
    return found


def main(arguments: Sequence[str]) -> int:
    """`python -m benchmarks.t5 NAME|FOLDER [texts=FILE]`; returns the exit code."""
    command = told_apart(arguments, _OF_CHECK, is_configured=False)
    if len(command.words) != 1:
        raise ModelError("name one model: python -m benchmarks.t5 NAME, or FOLDER")
    count, limit = command.number("count") or _COUNT, command.number("max_new_tokens") or _MAX_NEW_TOKENS
    named = command.settings.get("texts")
    texts = sample_texts(count) if named is None else texts_of(Path(named).expanduser(), count)
    with progress() as show:
        found = check(command.words[0], texts, limit, command.settings.get("prefix", _PREFIX), show)
    _show(found)
    return 0 if found.holds else DIFFERS


def _show(found: Checked) -> None:
    say(
        f"{found.model}: {found.texts} texts, summaries of at most {found.limit} tokens, {found.threads} threads; "
        "beside torch's, token by token"
    )
    show_table(("by", *(Column(name, "number", digits) for name, digits in _NUMBERS)), map(_row, found.results))
    says = "says what torch says" if found.holds else "does not say what torch says"
    say(f"fp32 {says}; close: two choices within 1e-4 nats, so that rounding decides")


def _row(one: Result) -> tuple[object, ...]:
    held = one.agreement
    shares = ("", "") if held is None else (f"{held.equal} of {one.texts}", held.close)
    rouge_l = "" if one.rouge_l is None else one.rouge_l
    return one.by, one.beams, one.batch_size, *shares, rouge_l, one.tokens_per_second, one.seconds_per_summary


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LcmError as error:
        sys.exit(f"benchmarks: {error}")
