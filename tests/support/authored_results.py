"""What the choices of authored documents give over files in which every setting matters."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from lcm.errors import LcmError
from pipelines.config import building

FILES = {
    "AGENTS.md": b"# Rules\n\n- Quote the file.\n  - Quote the line.\n\nYou must be brief.\n\nNo problem, thanks.\n",
    "notes/harbour.md": b"---\nhop_targets: AGENTS.md#000000\n---\nThe harbour lies north. #place\n",
    "notes/windows.md": b"---\r\ntitle: cr lf\r\n---\r\nThe kettle whistles.\r\n",
    "notes/memory.md": b"> Ada drinks tea.\n",
}


def write_files(folder: Path) -> Path:
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def authored(config: DictConfig) -> Any:
    """The nodes of the files above, or of the paths that are set; or why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        if "paths" in config.authored and not config.authored.paths:
            config.authored.paths = [str(write_files(Path(folder)))]
        try:
            return building.build(config, "authored").nodes(incidents=Counter())
        except LcmError as error:
            return str(error).replace(folder, "")
