"""Folders of datasets that others made: of what lies there nothing outside is read, and nothing is waited for."""

import logging
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.dataset.dataset import Dataset
from lcm.errors import LcmError
from lcm.given import opened
from pipelines.config import building
from tests.support.composing import composed
from tests.support.interrupting import within
from tests.support.knobs.small_datasets import SMALL_DATASETS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and devices are POSIX's")
CANARY = "the canary sings"
MOST_SECONDS = 20

targets = st.sampled_from(["outside", "pipe", "/dev/zero", "/dev/stdin", "/proc/self/mem", "gone", "itself", "above"])


@given(data=st.data(), name=st.sampled_from(sorted(SMALL_DATASETS)))
def test_nothing_outside_of_a_dataset_is_read_and_nothing_hangs(data: st.DataObject, name: str) -> None:
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        inside, outside = Path(place, "inside"), Path(place, "outside")
        inside.mkdir()
        config = composed([f"dataset={name}"])
        config.dataset.directory = SMALL_DATASETS[name](inside, patch)
        shutil.copytree(inside, outside)
        for path in files(outside):
            if path.suffix != ".parquet":
                path.write_text(re.sub("(?<=[a-z]) (?=[a-z])", f" {CANARY} ", unpacked(path)))
        for path in data.draw(st.lists(st.sampled_from(everything(inside)), max_size=3, unique=True)):
            if path.exists() and not path.is_symlink():
                replace(path, data.draw(targets), inside, outside)
        for extra in data.draw(st.lists(targets, max_size=2)):
            replace(inside / f"extra{len(list(inside.iterdir()))}.jsonl", extra, inside, outside)
        with within(MOST_SECONDS):
            try:
                dataset: Dataset = building.build(config, "dataset").load()
            except LcmError as error:
                assert "\n" not in str(error)
            else:
                said = [message.content for one in dataset.transcripts for message in one.messages]
                assert not [words for words in (*said, *(query.text for query in dataset.queries)) if CANARY in words]
    logging.disable(logging.NOTSET)


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def files(folder: Path) -> list[Path]:
    return [path for path in everything(folder) if path.is_file()]


def unpacked(path: Path) -> str:
    with opened(path) as stream:
        return stream.read().decode()


def replace(path: Path, target: str, inside: Path, outside: Path) -> None:
    """Put a link, a pipe or a link to a device in the place of a file or folder."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    own = outside / path.relative_to(inside)
    if target == "pipe":
        os.mkfifo(path)
    else:
        to = {"outside": own if own.exists() else files(outside)[0], "itself": path, "above": inside.parent}
        path.symlink_to(to.get(target, target))
