"""Fuzz readers: `python -m tests.fuzz TARGET ... [seconds=600] [found=FOLDER]`.

Guided by coverage, for which it needs atheris (`pip install atheris`); `test_targets.py` changes seeds by Hypothesis.
Each target has a process of its own; what a process found is kept in the folder, and tells how to run it again.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lcm.errors import LcmError

MEMORY_MB, INPUT_SECONDS = 4096, 60
"""What a single input may take; one that takes five times as long ends its process."""


def main(arguments: Sequence[str]) -> int:
    """Fuzz each target for as long, and print a row for each."""
    settings = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    seconds, found = float(settings.get("seconds", 600)), Path(settings.get("found", "fuzzed"))
    if "target" in settings:
        return _fuzz(settings["target"], seconds, found)
    from tests.fuzz.targets import TARGETS

    asked = [argument for argument in arguments if "=" not in argument] or list(TARGETS)
    print("| target | inputs | defects |\n|---|---:|---|")
    worst = 0
    for name in asked:
        folder = found.resolve() / name
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.fuzz", f"target={name}", f"seconds={seconds}", f"found={folder}"]
        limit_s = seconds + 5 * INPUT_SECONDS
        with (folder / "log.txt").open("w") as log:
            try:
                code = subprocess.run(
                    command, stdout=log, stderr=subprocess.STDOUT, check=False, timeout=limit_s
                ).returncode
            except subprocess.TimeoutExpired:
                code = -1
        said = (folder / "log.txt").read_text(errors="replace")
        ran = re.findall(r"stat::number_of_executed_units:\s*(\d+)", said)
        defects = sorted(path.name for kind in ("crash", "slow-unit", "oom") for path in folder.glob(f"{kind}-*"))
        told = ", ".join(defects) or (f"ended with {code}" if code else "none")
        print(f"| {name} | {ran[-1] if ran else '?'} | {told} |", flush=True)
        worst = max(worst, code != 0)
    return worst


def _fuzz(name: str, seconds: float, found: Path) -> int:
    import atheris

    with atheris.instrument_imports(include=["lcm", "eval.questions", "pipelines.import_preset", "json"]):
        from tests.fuzz.targets import TARGETS, seeds
    target, place = TARGETS[name], Path(tempfile.mkdtemp())

    def one(content: bytes) -> None:
        with suppress(LcmError):
            target(place, content)

    corpus, words = place / "corpus", place / "words.txt"
    corpus.mkdir()
    known = {"null"}  # names and short values of the seeds, for the fuzzer to put in
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed-{number}").write_bytes(seed)
        known |= {word.decode() for word in re.findall(rb'"([\w.:-]{2,24})"', seed)}
    words.write_text("".join(f'"{word}"\n' for word in sorted(known)))
    options = [
        *(f"-max_total_time={seconds:.0f}", f"-timeout={5 * INPUT_SECONDS}", f"-report_slow_units={INPUT_SECONDS}"),
        *(f"-rss_limit_mb={MEMORY_MB}", f"-dict={words}", f"-artifact_prefix={found}/", "-print_final_stats=1"),
        "-max_len=131072",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    try:
        atheris.Fuzz()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
