"""Names and links from hostile data: nothing outside of what was named is read or changed, and nothing hangs."""

import contextlib
import json
import logging
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import LcmError
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.folders import recorded_files
from lcm.transcript.reading import read_pieces, reader_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and devices are POSIX's")
CANARY = "the canary sings"

names = st.sampled_from(
    ["..", "...jsonl", "....jsonl.gz", "../canary", "../../canary.jsonl", "/etc/passwd", "/dev/zero", "a\nb", "a\0b",
     "~", "$HOME", "-rf", "con", "agent-x", "subagents", "%2e%2e", "a\\..\\b", "\ud800", "x" * 300]
) | st.text(max_size=12)  # fmt: skip
links = st.lists(
    st.tuples(
        names, st.sampled_from(["canary.jsonl", "subagents", ".", "fifo", "/dev/zero", "root", "/proc/self/mem"])
    ),
    max_size=4,
)


@given(names=st.lists(names, min_size=1, max_size=4), links=links)
def test_nothing_outside_is_read_or_changed(names: list[str], links: list[tuple[str, str]]) -> None:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        place, outside = Path(folder), canaries(Path(folder))
        root = place / "root"
        os.mkfifo(place / "fifo")
        os.mkfifo(root / "pipe.jsonl")
        for name in names:
            write(root / name.replace("/", "_"), name)
            write(root / f"{name.replace('/', '_')}.jsonl", name)
        for name, target in links:
            link(root / name.replace("/", "_"), place / target)
            link(root / f"{name.replace('/', '_')}.jsonl", place / target)
        with Store(place / "stores" / "memory.db") as store:
            for file in recorded_files([root]):
                try:
                    store.ingest_pieces(read_pieces(file, reader_of(file)), Utf16Units())
                except LcmError:
                    continue
            said = [message.content for message in store.messages()]
            for key in store.conversations()["conversation_id"]:
                with store.serialised(key):
                    pass
        assert not [words for words in said if CANARY in words]
        assert {path: path.read_bytes() for path in outside} == outside
        made = {path.relative_to(place).parts[0] for path in place.rglob("*")}
        assert made == {"root", "stores", "fifo", "canary.jsonl", "subagents"}
    logging.disable(logging.NOTSET)


def canaries(place: Path) -> dict[Path, bytes]:
    """Files beside the folder that will be named, where names with dots and links lead."""
    (place / "root").mkdir()
    (place / "subagents").mkdir()
    paths = [place / "canary.jsonl", place / "subagents" / "agent-x.jsonl"]
    for path in paths:
        path.write_text(line("canary", CANARY))
    return {path: path.read_bytes() for path in paths}


def line(session: str, words: str) -> str:
    told = {"type": "user", "uuid": words, "sessionId": session, "timestamp": "2026-01-05T09:00:00Z"}
    return json.dumps({**told, "message": {"role": "user", "content": words}}) + "\n"


def write(path: Path, name: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # no file can have that name
        path.write_text(line(name, f"said in {name!r}"))


def link(path: Path, target: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        path.symlink_to(target)


def test_a_pipe_that_is_named_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(LcmError, match="neither a file nor a folder, and may never end: name one"):
            recorded_files([path])
