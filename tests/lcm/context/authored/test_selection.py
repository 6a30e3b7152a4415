"""Which files are read, and what they are called."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lcm.context.authored import SelectedFile, selected_files
from lcm.errors import LcmError


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("words\n")


def selected(paths: Sequence[object], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[SelectedFile]:
    return selected_files([str(path) for path in paths], include, exclude)


def names(paths: Sequence[object], include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
    return [file.name for file in selected(paths, include, exclude)]


def test_of_a_folder_markdown_is_read_and_a_file_that_is_named_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path / "notes", "b.md", "a.MD", "c.markdown", "d.txt", "sub/deep/b.md", "sub/e.mdx")
    assert names([tmp_path / "notes"]) == ["a.MD", "b.md", "c.markdown", "sub/deep/b.md"]
    for name in ("RULES", "a[1].md"):  # the latter with the signs of a glob
        write(tmp_path, name)
        assert selected([tmp_path / name]) == [SelectedFile(tmp_path / name, name, True)]


def test_a_glob_reads_what_it_matches(tmp_path: Path) -> None:
    write(tmp_path, "a/x.md", "b/x.md", "b/y.md", "b/z.png")
    assert names([tmp_path / "b" / "*"]) == ["x.md", "y.md"]
    assert names([tmp_path / "**" / "x.md"]) == ["a/x.md", "b/x.md"]
    assert names([tmp_path / "[ab]"]) == ["a/x.md", "b/x.md", "y.md"]


def test_patterns_choose_within_folders_and_never_leave_memory_out(tmp_path: Path) -> None:
    write(tmp_path, "a/note.md", "a/b.md", "a/notes/x.md", "z/MEMORY.md", "z/w.md")
    assert names([tmp_path], ["*note*"]) == ["a/note.md", "a/notes/x.md", "z/MEMORY.md"]
    assert names([tmp_path], ["a/*"]) == ["a/b.md", "a/note.md", "a/notes/x.md", "z/MEMORY.md"]
    assert names([tmp_path], [], ["a/*"]) == ["z/MEMORY.md", "z/w.md"]
    assert names([tmp_path], ["*"], ["*"]) == ["z/MEMORY.md"]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    write(tmp_path, "p/a/AGENTS.md", "q/a/AGENTS.md", "q/b/AGENTS.md", "q/souls.md")
    paths = [tmp_path / "p/a", tmp_path / "q/a", tmp_path / "q/b/AGENTS.md", tmp_path / "q/souls.md"]
    assert names(paths) == ["p/a/AGENTS.md", "q/a/AGENTS.md", "b/AGENTS.md", "souls.md"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    (tmp_path / "link.md").symlink_to(tmp_path / "a.md")
    assert names([tmp_path / "a.md", tmp_path, tmp_path / "link.md"]) == ["a.md"]


def test_a_path_that_names_nothing_is_refused(tmp_path: Path) -> None:
    for name in ("missing.md", "nothing/*.md"):
        with pytest.raises(LcmError, match=r"^authored\.paths names '.*', where there is no file: mend the path"):
            selected([tmp_path / name])
