"""Files and folders that a text names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lcm.compaction.facts.statement import ReadText, Statement

_SEGMENT = r"[\w.@+%~-]+"
_PATH = re.compile(
    rf"(?<![\w.@+%~/\\:-])(?:(?:[A-Za-z]:(?:\\{_SEGMENT}){{1,30}}|(?:~|\.{{1,2}})?(?:/{_SEGMENT}){{1,30}}|{_SEGMENT}(?:/{_SEGMENT}){{1,30}})/?"
    rf"|{_SEGMENT}/(?=[\s`'\",;)]|\.?$)|[\w@+%~-][\w.@+%~-]{{0,80}}\.[A-Za-z]\w{{0,9}}|Makefile|Dockerfile)(?![\w/\\(]|://|@)"
)
_NAMED = re.compile(r"[\w-]*\w\.[A-Za-z]\w{0,9}")
_SUBSTITUTION = re.compile(r"[sy]/.+/")
_EXTENSIONS = frozenset(
    """py pyi ipynb js jsx ts tsx mjs cjs json jsonl yaml yml toml ini cfg conf env md rst txt csv tsv parquet sql sh
    bash zsh ps1 bat c h cc cpp hpp cs java kt go rs rb php swift scala r jl lua pl html htm css scss vue svelte xml svg
    png jpg jpeg gif webp pdf doc docx xls xlsx ppt pptx odt zip tar gz tgz log lock db sqlite mp3 mp4 wav proto graphql
    gradle tf dockerfile mod sum diff patch ics eml tex bib""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Paths:
    """A path has an extension that files have, or begins at a root (`/`, `~`, `./`), or has two separators."""

    def find(self, read: ReadText) -> Iterator[Statement]:
        for match in _PATH.finditer(read.text):
            said = match[0].rstrip(".,:")
            if is_file(said) and read.tells(match.start()):
                yield Statement("path", path_key(said), "", said, match.start(), match.start() + len(said))


def is_file(said: str) -> bool:
    """Whether a word with separators or a dot is a path, not "and/or", "e.g." or a host."""
    last = said.rstrip("/").replace("\\", "/").rpartition("/")[2]
    if last in ("Makefile", "Dockerfile"):
        return True
    if _NAMED.fullmatch(last.lstrip(".")) and last.rpartition(".")[2].lower() in _EXTENSIONS:
        return True
    inner = said.replace("\\", "/")
    if _SUBSTITUTION.match(inner):
        return False
    if inner.endswith("/") and inner.count("/") == 1 and inner[0].isalpha():
        return True
    is_rooted = inner.startswith(("/", "~/", "./", "../")) and inner.count("/") >= 2
    return (is_rooted or inner.rstrip("/").count("/") >= 2) and any(letter.isalpha() for letter in inner)


def path_key(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").rstrip("/").strip("`'\"")


def is_same_path(one: str, other: str) -> bool:
    """Equal, or one is the end of the other and names a folder too."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return "/" in short.strip("/") and long.endswith(f"/{short.lstrip('/~')}")
