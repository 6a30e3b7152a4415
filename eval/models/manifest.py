"""What a folder of a model was got from: `download.json` in it, by which later downloads are checked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from lcm.errors import ModelError
from lcm.files import write_text

MANIFEST = "download.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """Where files came from, and what they were."""

    origin: str
    """What they are files of: `google-t5/t5-small at df1b051...`, or the address that they lie below."""
    files: Mapping[str, str]
    """Name -> SHA-256, of those that came whole."""

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """That of a folder; None where it has none.

        Raises:
            ModelError: if it is not as `write` leaves it.
        """
        path = folder / MANIFEST
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            files = {str(name): str(digest) for name, digest in said["files"].items()}
            return cls(str(said["origin"]), files)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as err:
            raise ModelError(
                f"{path} is damaged ({err}); remove it, and the same command takes files as they come"
            ) from err

    def write(self, folder: Path) -> None:
        told = {"origin": self.origin, "files": dict(sorted(self.files.items()))}
        write_text(folder / MANIFEST, json.dumps(told, indent=2) + "\n")
