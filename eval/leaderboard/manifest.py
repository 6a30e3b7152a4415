"""The manifest of a leaderboard: digests of code, data, configurations and results, and who signed them."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from eval.leaderboard.board import BoardRun, Leaderboard
from eval.run import CONFIG, ENVIRONMENT, SUMMARY, commit, write_json
from eval.shape import DATASET, TEXT, each, keys, list_of, or_null
from lcm import __version__
from lcm.derived import sum_of
from lcm.errors import LcmError
from lcm.given import plain_bytes, read_whole

MANIFEST = "manifest.json"
PAGE = "index.html"
RUNS = "runs"
KEPT = (CONFIG, ENVIRONMENT, SUMMARY)
"""What of a run's folder lies beside the page."""
_ALGORITHM = "ed25519"
_NAME = re.compile(r"\d{3,}")
_PACKAGES = ("lcm", "eval")
_ROW = keys(
    {
        "name": TEXT, "system": TEXT, "dataset": DATASET,
        "config_hash": TEXT, "commit": or_null(TEXT), "command": or_null(TEXT), "results": each(TEXT),
    }
)  # fmt: skip
_SHAPE = keys(
    {
        "kind": TEXT, "measure": TEXT, "rows": list_of(_ROW), "files": each(TEXT), "sha256": TEXT,
        "code": keys({"lcm": TEXT, "source": TEXT, "commit": or_null(TEXT)}),
    },
    {"signature": keys({"algorithm": TEXT, "public_key": TEXT, "value": TEXT})},
)  # fmt: skip


def manifest_of(board: Leaderboard, folder: Path, names: list[str]) -> dict[str, Any]:
    """The manifest of a leaderboard whose files lie in a folder.

    Args:
        names: of the files, as paths below the folder.
    """
    told = {
        "kind": "leaderboard",
        "measure": board.measure,
        "code": {
            "lcm": __version__,
            "source": source_digest(),
            "commit": commit(),
        },
        "rows": [row_of(run) for run in board.runs],
        "files": {name: sum_of(folder / name) for name in sorted(names)},
    }
    return {**told, "sha256": digest_of(told)}


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Of all that a manifest says, but for this digest and the signature of it."""
    told = {key: value for key, value in manifest.items() if key not in ("sha256", "signature")}
    return hashlib.sha256(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def source_digest() -> str:
    """Of the source that makes numbers, whichever way it is installed."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        root = Path(str(files(package)))
        for path in sorted(one for one in root.rglob("*") if one.suffix in (".py", ".sql", ".json", ".yaml")):
            digest.update(f"{package}/{path.relative_to(root).as_posix()} {sum_of(path)}\n".encode())
    return digest.hexdigest()


def results_of(folder: Path) -> dict[str, str]:
    """The sums of the tables of a run: equal runs have equal ones, for what may differ stands elsewhere."""
    return {path.name: sum_of(path) for path in sorted(folder.glob("*.parquet"))}


def private_key(path: Path) -> Ed25519PrivateKey:
    """The key that a file holds.

    Raises:
        LcmError: if it holds no private key of Ed25519.
    """
    try:
        found = load_pem_private_key(read_whole(path), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise LcmError(f"key={path} holds no private key: `openssl genpkey -algorithm ed25519` makes one") from error
    if not isinstance(found, Ed25519PrivateKey):
        raise LcmError(f"key={path} is no key of Ed25519: `openssl genpkey -algorithm ed25519` makes one")
    return found


def signed(manifest: Mapping[str, Any], key: Ed25519PrivateKey) -> dict[str, Any]:
    """The manifest with a signature of its digest."""
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {
        **manifest,
        "signature": {
            "algorithm": _ALGORITHM,
            "public_key": base64.b64encode(public).decode(),
            "value": base64.b64encode(key.sign(manifest["sha256"].encode())).decode(),
        },
    }


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    write_json(folder / MANIFEST, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder, whole and of the right shape.

    Raises:
        LcmError: if there is none, or it does not say what it was written with.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(plain_bytes(path))
        _SHAPE("", manifest)
    except FileNotFoundError as error:
        raise LcmError(f"{folder} has no {MANIFEST}: name a folder that `lcm leaderboard` wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise LcmError(f"{path} is no manifest of a leaderboard ({error})") from error
    if digest_of(manifest) != manifest["sha256"]:
        raise LcmError(f"{path} is not as it was written: its digest is another")
    for row in manifest["rows"]:
        if not _NAME.fullmatch(row["name"]):
            raise LcmError(f"{path}: a row must be named by a number, got {row['name']!r}")
    return manifest  # type: ignore[no-any-return]


def changed_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The files of a leaderboard that are missing, or not as the manifest says; and those that it does not say."""
    wanted = {PAGE, *(f"{RUNS}/{row['name']}/{name}" for row in manifest["rows"] for name in KEPT)}
    told = manifest["files"]
    wrong = [name for name in sorted(wanted | told.keys()) if name not in told or name not in wanted]
    for name in sorted(wanted & told.keys()):
        path = folder / name
        if path.is_symlink() or not path.is_file() or sum_of(path) != told[name]:
            wrong.append(name)
    return wrong


def files_beside(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """What lies in the folder of a leaderboard and is none of its files: nobody vouches for it."""
    names = (one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_symlink() or not one.is_dir())
    return sorted(set(names) - {MANIFEST, *manifest["files"]})


def signer(manifest: Mapping[str, Any], key: Path | None = None) -> str | None:
    """Whose signature a manifest bears, as the fingerprint of the public key; None where nobody signed it.

    Args:
        key: a file with the public key that it must be; None = whichever the manifest names.
    Raises:
        LcmError: if the signature is none of the manifest, or of another key, or there is none where a key is named.
    """
    told = manifest.get("signature")
    if told is None:
        if key is not None:
            raise LcmError(f"nobody signed this manifest, and key={key} was to have")
        return None
    if told["algorithm"] != _ALGORITHM:
        raise LcmError(f"signature.algorithm must be {_ALGORITHM}, got {told['algorithm']!r}")
    try:
        public = base64.b64decode(told["public_key"], validate=True)
        if key is not None and public != _public(key):
            raise LcmError(f"another key signed this manifest ({fingerprint(public)}) than key={key}")
        value = base64.b64decode(told["value"], validate=True)
        Ed25519PublicKey.from_public_bytes(public).verify(value, manifest["sha256"].encode())
    except (InvalidSignature, ValueError) as error:
        raise LcmError("the signature is not one of this manifest: it was changed after it was signed") from error
    return fingerprint(public)


def fingerprint(public: bytes) -> str:
    return f"SHA256:{base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip('=')}"


def _public(key: Path) -> bytes:
    try:
        found = load_pem_public_key(read_whole(key))
    except (OSError, ValueError) as error:
        raise LcmError(f"key={key} holds no public key: `openssl pkey -in KEY -pubout` writes it") from error
    if not isinstance(found, Ed25519PublicKey):
        raise LcmError(f"key={key} is no key of Ed25519")
    return found.public_bytes(Encoding.Raw, PublicFormat.Raw)


def row_of(run: BoardRun) -> dict[str, Any]:
    """What a manifest says of a run."""
    return {
        "name": run.name,
        "system": run.system,
        "dataset": dict(run.summary["dataset"]),
        "config_hash": run.summary.get("config_hash", ""),
        "commit": run.summary.get("commit"),
        "command": run.command,
        "results": results_of(run.folder),
    }
