"""What a command needs is imported when it is needed: help and a misspelt key wait for nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "polars", "pyarrow", "numpy", "scipy", "sklearn", "matplotlib", "ir_measures", "mlflow", "onnxruntime", "optuna",
    "torch", "transformers",
)  # fmt: skip
COMMANDS = {
    "help": ["evaluate", "--help"],
    "misspelt key": ["evaluate", "fusion.dense_wieght=1"],
    "misspelt group": ["tune", "fusoin=hybrid"],
    "the configuration": ["evaluate", "--cfg", "job"],
}


@pytest.mark.slow
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_nothing_heavy_is_imported_before_it_is_needed(arguments: list[str]) -> None:
    code = (
        "import sys; from pipelines import cli; cli.run(sys.argv[1:]); "
        f"print('imported:', *sorted({set(HEAVY)} & set(sys.modules)))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.splitlines()[-1] == "imported:", told.stderr
