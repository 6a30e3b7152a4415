"""What is fuzzed: every reader of files that come from elsewhere, as a function of the bytes of one file.

A target gives back nothing. It may raise `LcmError`, which is how a reader refuses a file; whatever else it raises,
a law that it finds broken, and what takes too long or too much memory is a defect.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from eval.questions.files import read_file
from lcm.plugins.settings.tables import TABLES
from lcm.transcript.parts import rebuild_record
from lcm.transcript.reader import TranscriptReader
from lcm.transcript.reading import READERS, joined, read_pieces, reader_of
from lcm.transcript.recorded_file import RecordedFile
from pipelines.config import conf_folder
from pipelines.import_preset import imported_plugin, imported_preset
from tests.conftest import ROOT
from tests.support.damaged_questions import ALSO_GOOD, GOOD

RECORDINGS = ROOT / "tests" / "recordings"
SMALL = 64 * 2**10
"""Bytes of the largest file that a fuzzer begins with."""

Target = Callable[[Path, bytes], None]
"""Called with an empty folder of its own and the bytes."""


def transcript(reader: TranscriptReader, folder: Path, content: bytes) -> None:
    """Read twice: equal both times; every recorded message gives back its record, every line put aside can be told."""
    path = folder / f"fuzzed.{reader.name}"
    path.write_bytes(content)
    both = []
    for _ in range(2):
        file = RecordedFile(path)
        transcripts = joined(read_pieces(file, reader))
        for one in transcripts:
            for message in one.messages:
                if reader.name != "parquet" or "native" in message.envelope:  # rows may be of no recording
                    json.dumps(rebuild_record(message))
        both.append(repr((transcripts, list(map(str, file.quarantine)))))
    assert both[0] == both[1]


def recognised(folder: Path, content: bytes) -> None:
    """Read by whichever reader knows it."""
    path = folder / "fuzzed"
    path.write_bytes(content)
    file = RecordedFile(path)
    joined(read_pieces(file, reader_of(file)))


def questions(ending: str, folder: Path, content: bytes) -> None:
    """Read a questions file, and tell every problem of it."""
    path = folder / f"questions.{ending}"
    path.write_bytes(content)
    for problem in read_file(path).problems:
        str(problem)


def preset(folder: Path, content: bytes) -> None:
    """Compose a preset of the user's own, as `lcm import` does."""
    path = folder / "system" / "fuzzed.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    imported_preset(path)


def plugin_settings(plugin: str, folder: Path, content: bytes) -> None:
    """Read the configuration of a plugin, as `lcm import` does."""
    path = folder / "fuzzed.json"
    path.write_bytes(content)
    imported_plugin([path], plugin)


TARGETS: dict[str, Target] = {
    **{reader.name: partial(transcript, reader) for reader in READERS},
    "recognised": recognised,
    **{f"questions_{ending}": partial(questions, ending) for ending in ("jsonl", "csv", "parquet")},
    "preset": preset,
    **{
        f"settings_{plugin}": partial(plugin_settings, plugin)
        for plugin in ("lancedb_pro", "lossless_claw", "libravdb")
    },
}


def seeds(name: str) -> Iterator[bytes]:
    """The files that the fuzzing of a target begins with."""
    kind, _, which = name.partition("_")
    if name == "preset":
        yield from (path.read_bytes() for path in sorted((conf_folder.conf_dir() / "system").glob("*.yaml")))
    elif kind == "settings":
        yield json.dumps(_example(TABLES[which].schema()), indent=1).encode()
    elif kind == "questions":
        yield _questions(which)
    else:
        for path in sorted(RECORDINGS.iterdir()):
            if name in ("recognised", path.name.partition(".")[0]):
                content = path.read_bytes()
                yield content if path.suffix == ".parquet" else content[:SMALL]


def _questions(ending: str) -> bytes:
    if ending == "jsonl":
        return b"\n".join(json.dumps(question).encode() for question in (GOOD, ALSO_GOOD))
    table = pl.DataFrame({"question": [GOOD["question"]], "evidence": GOOD["evidence"], "category": ["fact"]})
    if ending == "csv":
        return table.write_csv().encode()
    written = io.BytesIO()
    table.write_parquet(written)
    return written.getvalue()


def _example(schema: Mapping[str, Any]) -> Any:
    """A value that a schema takes, with every key."""
    if "properties" in schema:
        return {key: _example(value) for key, value in schema["properties"].items()}
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
        case "number" | "integer":
            return schema.get("minimum", schema.get("maximum", 1))
    return "words"
