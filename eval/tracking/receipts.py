"""Receipts: what a folder says of where it was logged."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from lcm.derived import sealed, unsealed
from lcm.errors import LcmError
from lcm.files import write_text
from lcm.given import plain_bytes
from lcm.redaction import redacted_record

RECEIPT = "mlflow.json"
"""Says where a folder was logged, and what its summary was then; null while others are logged below it and it has none.
"""
_RECEIPT_KEYS = ("uri", "experiment", "summary_sha256", "run_id")


def receipts_of(folder: Path) -> list[dict[str, str | None]]:
    path = folder / RECEIPT
    if not path.exists():
        return []
    try:
        receipts = [unsealed(one, _RECEIPT_KEYS) for one in json.loads(plain_bytes(path))]
        whole = [one for one in receipts if one is not None]
    except (ValueError, TypeError, OSError):
        receipts, whole = [None], []
    if len(whole) < len(receipts):
        raise LcmError(f"{path} is damaged: remove it, and the folder is logged anew")
    return whole


def keep_receipts(folder: Path, receipts: Sequence[Mapping[str, str | None]]) -> None:
    write_text(folder / RECEIPT, json.dumps([sealed(redacted_record(one)) for one in receipts], indent=2) + "\n")
