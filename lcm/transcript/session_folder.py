"""The folder that Claude Code keeps beside a session, named as the session's file is.

In it lie the files of sub-agents, `agent-*.jsonl`, however deep, with what is noted on each (`.meta.json`); the
journals of workflows that ran some of them (`journal.jsonl`); and under `tool-results` the results of which a message
shows the beginning alone.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lcm.errors import TranscriptError
from lcm.files import is_below
from lcm.given import PACKED_ENDINGS, files_below, opened_as_is
from lcm.transcript.recorded_file import MAX_LINE_BYTES, RecordedFile, without_ending

_AGENT = re.compile(rf"agent-.*\.jsonl({'|'.join(map(re.escape, PACKED_ENDINGS))})?")
_RESULTS = "tool-results"
_SAVED = re.compile(
    r"\s*(?:<persisted-output>|Error: result \()[^\0]{0,300}?saved to:?\s+"
    rf"(?:[^\n]*?[/\\])?([^/\\\n]*?)[/\\]?{_RESULTS}[/\\]([^/\\\n]+?\.\w+)\.?(?:\s|$)"
)
"""How a result begins of which the whole was saved, the folder of the session that saved it, and the file's name."""


def beside(session: Path) -> list[Path]:
    """The files that are read along with a session's: all that its folder holds of it, and the notes on each."""
    read = agents(session)
    noted = [path for told in (session, *read) if is_beside(session, path := notes(told))]
    return [*read, *noted, *journals(session), *_results(session)]


def agents(session: Path) -> list[Path]:
    """The files of its sub-agents in order; of one that is there plain and packed, the plain one."""
    found = [path for path in _files(session) if _AGENT.fullmatch(path.name)]
    packed_first = sorted(found, key=lambda path: path.suffix not in PACKED_ENDINGS)
    return sorted({(path.parent, without_ending(path)): path for path in packed_first}.values())


def journals(session: Path) -> list[Path]:
    """What workflows note of the sub-agents that they run."""
    return [path for path in _files(session) if path.name == "journal.jsonl"]


def notes(told: Path) -> Path:
    """What Claude Code notes beside a session's or a sub-agent's file."""
    return told.with_name(f"{without_ending(told)}.meta.json")


def is_beside(session: Path, path: Path) -> bool:
    """Whether there is such a file, and neither a link nor the session's own name leads out of the session's folder."""
    return path.is_file() and is_below(path.resolve(), [session.resolve().parent])


def is_agent(path: Path) -> bool:
    """Whether the file is a sub-agent's, by its name."""
    return _AGENT.fullmatch(path.name) is not None


class ToolResults:
    """The results of a session and its sub-agents that lie beside them, each read where a message names it.

    A session that was forked shows results that lie beside the one it was forked from.
    """

    def __init__(self, file: RecordedFile) -> None:
        """Look at which there are.

        Args:
            file: the session's, or that of a sub-agent which is read by itself; it counts what is read.
        """
        self._file = file
        self._files = {path.name: path for path in _results(file.path)}
        self._others: dict[str, dict[str, Path]] = {}
        """The results of other sessions, by the names of their folders."""
        self._named: set[str] = set()
        self._lacking: list[str] = []

    def whole(self, shown: str) -> str | None:
        """The whole result of which a message shows the beginning; None where the message shows all there is."""
        saved = _SAVED.match(shown)
        if saved is None:
            return None
        folder, name = saved.groups()
        self._named.add(name)
        try:
            return self._text(self._files.get(name) or self._beside(folder).get(name))
        except TranscriptError as error:
            self._lacking.append(f"{_RESULTS}/{name} {error}")
            return None

    def unnamed(self) -> Iterator[tuple[str, str]]:
        """The other texts there, such as the output of hooks, with their names; what is no text is put aside."""
        for name in sorted(self._files.keys() - self._named):
            aside = RecordedFile(self._files[name], strict=self._file.strict)
            aside.quarantine = self._file.quarantine
            try:
                text = self._text(self._files[name])
            except TranscriptError as error:
                aside.put_aside(1, f"a file that {error}", to_end=True)
            else:
                yield name, text

    def tell(self) -> None:
        """Leave with the file which results are there in part."""
        if self._lacking:
            first, more = self._lacking[0], len(self._lacking) - 1
            others = f", and so {more:,} more" if more else ""
            self._file.doubts.append(f"{self._file.path}: only the beginning of a tool's result: {first}{others}")

    def _beside(self, folder: str) -> dict[str, Path]:
        """The results of the session with this folder, which lies where the folder of the one that is read does."""
        if folder not in self._others:
            session = self._file.path
            # A sub-agent's file lies deeper than its session.
            folders = (parent.parent.parent for parent in session.parents if parent.name == "subagents")
            within = next(folders, session.parent) if is_agent(session) else session.parent
            paths = _plain_files(within / folder / _RESULTS, within) if folder.strip(".") else []
            self._others[folder] = {path.name: path for path in paths}
        return self._others[folder]

    def _text(self, path: Path | None) -> str:
        if path is None:
            raise TranscriptError("is not there")
        try:
            with opened_as_is(path) as stream:
                content = stream.read(MAX_LINE_BYTES + 1)
        except OSError as error:
            raise TranscriptError(f"cannot be read: {error}") from error
        if len(content) > MAX_LINE_BYTES:
            raise TranscriptError(f"has more than {MAX_LINE_BYTES // 2**20} MiB")
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise TranscriptError(f"is not UTF-8 text: {error.reason}") from error
        self._file.bytes_read += len(content)
        if path not in self._file.read_along:
            self._file.read_along.append(path)
        return text


def _files(session: Path) -> list[Path]:
    return _plain_files(session.parent / without_ending(session), session.resolve().parent)


def _results(session: Path) -> list[Path]:
    """What lies in the folder of results: for a sub-agent's file that of the session which it belongs to."""
    if not is_agent(session):
        return [path for path in _files(session) if path.parent.name == _RESULTS]
    folders = (parent.parent for parent in session.parents if parent.name == "subagents")
    return next(filter(None, (_plain_files(folder / _RESULTS, folder) for folder in folders)), [])


def _plain_files(folder: Path, within: Path) -> list[Path]:
    """The files of a folder, unless a link, or the folder's own name, leads out of what it lies in."""
    if not folder.is_dir() or not is_below(folder.resolve(), [within.resolve()]):
        return []
    return [path for path in files_below(folder, [within]) if path.is_file()]
