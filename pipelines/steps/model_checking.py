"""Holding a T5 against torch's."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from eval.models.checking import Checked, Result, check, sample_texts, texts_of
from lcm.errors import ModelError
from pipelines.config.arguments import told_apart
from pipelines.views.output import output
from pipelines.views.progress import progress
from pipelines.views.terminal import say, show_table

_OWN = ("texts", "count", "max_new_tokens", "prefix")
_COUNT, _MAX_NEW_TOKENS, _PREFIX = 100, 64, "summarize: "
DIFFERS = 1
"""The exit code where full precision does not say what torch says."""
_COLUMNS = ("by", "beams", "batch", "equal", "close", "ROUGE-L", "tokens/s", "s/summary")


def check_model(arguments: Sequence[str]) -> int:
    """`lcm models check NAME|FOLDER [texts=FILE]`; returns the exit code."""
    command = told_apart(arguments, _OWN, is_configured=False)
    if len(command.words) != 1:
        raise ModelError("name one model to check: lcm models check NAME, or lcm models check FOLDER")
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
    show_table(_COLUMNS, [_row(one) for one in found.results], numbers=_COLUMNS[1:])
    says = "says what torch says" if found.holds else "does not say what torch says"
    say(f"fp32 {says}; close: two choices within 1e-4 nats, so that rounding decides")
    results = [{**asdict(one), "tokens_per_second": one.tokens_per_second} for one in found.results]
    output().result = {**asdict(found), "holds": found.holds, "results": results}


def _row(one: Result) -> tuple[object, ...]:
    held = one.agreement
    shares = ("", "") if held is None else (f"{held.equal} of {one.texts}", held.close)
    rouge_l = "" if one.rouge_l is None else f"{one.rouge_l:.3f}"
    speed = (f"{one.tokens_per_second:,.1f}", f"{one.seconds_per_summary:.3f}")
    return (one.by, one.beams, one.batch_size, *shares, rouge_l, *speed)
