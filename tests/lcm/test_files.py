"""Files that are written whole or not at all."""

import os
from pathlib import Path

import pytest

from lcm.files import written_whole


@pytest.fixture
def umask(request: pytest.FixtureRequest):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.mark.skipif(os.name != "posix", reason="a umask is POSIX's")
@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077], indirect=True)
def test_the_umask_says_who_may_read_a_file(tmp_path: Path, umask: int) -> None:
    for content in (b"first", b"second"):
        with written_whole(tmp_path / "folder" / "file") as stream:
            stream.write(content)
        assert (tmp_path / "folder" / "file").read_bytes() == content
        assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o666 & ~umask


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("before")

    def broken() -> None:
        with written_whole(tmp_path / "file") as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("file", "before")]
