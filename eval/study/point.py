"""The folder of a point: what it is and what its numbers come from, before it runs; then its numbers, or why there
are none."""

import hashlib
import importlib.util
import json
import logging
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from eval.cache.stage_cache import Unidentified, content_of, libraries, source_digest
from eval.configuration import config_hash
from eval.external.session import is_fault
from eval.run import POINT, SUMMARY, read_summary
from lcm.consent import is_trusted
from lcm.derived import SUM, SUMS, changed_in, sealed, unsealed
from lcm.errors import LcmError
from lcm.faults import is_of_machine
from lcm.files import write_text, written_whole
from lcm.given import plain_bytes
from lcm.redaction import redacted_record

_log = logging.getLogger(__name__)
_OURS = ("lcm", "eval")
_ALWAYS = frozenset({"eval.experiment.experiment", "eval.run"})
_BESIDE = ("cache", "executor", "report", "stages", "tracking")
"""What changes no number. Latencies do depend on how many queries are timed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a sweep point's numbers come from; two points of the same origin have the same numbers."""

    config_hash: str
    """Of all settings but those that change no number."""
    dataset_digest: str
    code: str
    """Digest of the source of every component that the configuration names, and of the libraries under it."""
    files: str
    """Digest of every file that a setting names by itself, by its folder or by a pattern; but for the dataset's, whose
    own digest tells more."""


def content_named(text: str) -> list[str]:
    """What a setting names, as far as that is few enough files to be meant by it."""
    try:
        return content_of(text)
    except Unidentified as error:
        _log.warning("setting %r: %s; what changes in them is not seen", text, error)
        return []


def origin_of(
    resolved: Mapping[str, Any],
    dataset_digest: str,
    told: str = "",
    content: Callable[[str], list[str]] = content_named,
) -> Origin:
    """Tell what the numbers of a configuration come from.

    Args:
        resolved: the configuration, every interpolation worked out.
        told: what an external memory says of itself, name and version: it has no source to look at.
        content: looks for what a setting names, as `content_named`, and may remember it.
    """
    settings = _that_count(resolved)
    modules = frozenset(target.rpartition(".")[0] for target in _targets(settings))
    ours = frozenset(module for module in modules if module.partition(".")[0] in _OURS)
    sources = [source_digest(ours | _ALWAYS), str(libraries()), *(_source(one) for one in sorted(modules - ours))]
    code = hashlib.sha256("\x00".join([*sources, *filter(None, [told])]).encode()).hexdigest()[:16]
    named = {text: content(text) for key in settings if key != "dataset" for text in _texts(settings[key])}
    files = config_hash({text: found for text, found in named.items() if found})
    return Origin(config_hash(settings), dataset_digest, code, files)


def point_name(resolved: Mapping[str, Any]) -> str:
    """What the folder of a point is called: 12 hex digits of its settings, whatever stands beside it in a grid."""
    return config_hash(_that_count(resolved))[:12]


def _that_count(resolved: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in resolved.items() if key not in _BESIDE}


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for inner in node.values():
            yield from _texts(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _texts(inner)


def _targets(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if "_target_" in node:
            yield str(node["_target_"])
        for inner in node.values():
            yield from _targets(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _targets(inner)


def _source(module: str) -> str:
    """The source of a module from outside, by itself; of one that is trusted, for looking for it runs its package."""
    if not is_trusted(f"{module}."):
        return ""
    try:
        found = importlib.util.find_spec(module)
    except ImportError:  # of a target that is no module's
        return ""
    return "" if found is None or not found.has_location else Path(str(found.origin)).read_text(errors="replace")


FAILURE = "failure.json"
_POINT_KEYS = (*(field.name for field in fields(Origin)), "overrides")
_NAMING_KEYS = ("label", "objectives")
"""Which older points do not have."""


@dataclass(frozen=True, slots=True)
class PointFolder:
    path: Path

    def begin(self, origin: Origin, overrides: Sequence[str], label: str = "", objectives: Sequence[str] = ()) -> None:
        """Make the folder, empty but for what it will hold. Stopped at any moment, it can be begun again.

        Args:
            label: what the point is called among the others.
            objectives: the measures that points are chosen by, where that is known before any ran.
        Raises:
            LcmError: if there are files in it that no sweep wrote.
        """
        if not self._is_ours():
            raise LcmError(f"{self.path} holds something else than a point of a sweep: name another hydra.sweep.dir")
        self.clear()
        begun = self._beside("new")
        shutil.rmtree(begun, ignore_errors=True)  # of one that was stopped here
        told = {**asdict(origin), "overrides": list(overrides), "label": label}
        told = sealed(redacted_record({**told, "objectives": list(objectives)}))
        write_text(begun / POINT, json.dumps(told, indent=2) + "\n")
        begun.replace(self.path)

    def clear(self) -> None:
        """Remove the folder with all that it holds; what is half removed has another name, and looks like no run."""
        removed = self._beside("old")
        shutil.rmtree(removed, ignore_errors=True)  # of one that was stopped here
        if self.path.is_dir():
            if self.is_complete():
                (self.path / SUMMARY).replace(self.path / f"{SUMMARY}.old")
            self.path.replace(removed)
            shutil.rmtree(removed)

    def fail(self, reason: str) -> None:
        """Keep why there are no numbers; not among files that no sweep wrote, which would then be taken for a point."""
        if self._is_ours():
            self.path.mkdir(parents=True, exist_ok=True)
            write_text(self.path / FAILURE, json.dumps({"error": reason}, indent=2, ensure_ascii=False) + "\n")

    def put(self, files: Mapping[str, bytes]) -> None:
        """Write what another machine found for a begun point: name -> content; last the summary, where there is one."""
        for name in sorted(files, key=SUMMARY.__eq__):
            with written_whole(self.path / name) as file:
                file.write(files[name])

    def is_complete(self) -> bool:
        return (self.path / SUMMARY).exists()

    def damaged(self) -> Path | None:
        """The first file of a complete run that is not as it was written."""
        path = self.path / SUMMARY
        try:
            read_summary(self.path)
            path = self.path / POINT
            told = _read(path)
        except (LcmError, OSError, ValueError) as error:
            if is_of_machine(error):
                raise
            return path
        return path if told is None else changed_in(self.path)

    def without_sum(self) -> str | None:
        """What of a complete run of this lcm, which has sums of all, lost its own: one line that names it."""
        if not (self.path / SUMS).exists():
            return f"{self.path / SUMS} is missing"
        unsummed = [name for name in (SUMMARY, POINT) if SUM not in json.loads(plain_bytes(self.path / name))]
        return f"{self.path / unsummed[0]} lost its sum" if unsummed else None

    def is_of(self, origin: Origin) -> bool:
        """Whether what it holds has this origin, and no fault disturbed an external memory, which may answer now."""
        if self._is_disturbed():
            return False
        try:
            told = json.loads(plain_bytes(self.path / POINT))
        except (OSError, ValueError):
            return False
        return isinstance(told, dict) and bool(asdict(origin).items() <= told.items())

    def _is_disturbed(self) -> bool:
        try:
            incidents = json.loads(plain_bytes(self.path / SUMMARY)).get("incidents", ())
        except (LcmError, OSError, ValueError, AttributeError):  # none, or damaged, which `damaged` tells
            return False
        return any(map(is_fault, incidents))

    def summary(self) -> dict[str, Any] | None:
        """Of a complete run; None where it did not finish."""
        return read_summary(self.path) if self.is_complete() else None

    def failure(self) -> str | None:
        """Why it did not finish, if it was tried; one line."""
        path = self.path / FAILURE
        if self.is_complete() or not path.is_file():
            return None
        try:
            return str(json.loads(plain_bytes(path))["error"])
        except (ValueError, KeyError, TypeError):
            return f"{path} is damaged: nobody knows why it failed; the same command tries it again"

    def _is_ours(self) -> bool:
        """Whether it is a point's, or no one's: not there, or without anything but a failure."""
        if (self.path / POINT).exists() or not self.path.is_dir():
            return True
        return all(one.name == FAILURE or one.name.startswith(f".{FAILURE}.") for one in self.path.iterdir())

    def _beside(self, kind: str) -> Path:
        return self.path.with_name(f".{self.path.name}.{kind}")


def _read(path: Path) -> dict[str, Any] | None:
    """None where it is not as it was written."""
    told = json.loads(plain_bytes(path))
    keys = [name for name in _NAMING_KEYS if isinstance(told, dict) and name in told]
    return unsealed(told, (*_POINT_KEYS, *keys))
