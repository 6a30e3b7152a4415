"""The page of the docs that a notebook runs, run by one: a kernel of its own, cell by cell."""

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"
ROOT = PAGE.parents[1]


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The cells of the page, run."""
    place = tmp_path_factory.mktemp("notebook")
    (place / "data").symlink_to(ROOT / "data")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(block) for block in blocks])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'pipelines'}")
        patch.setenv("LCM_CACHE_DIR", str(place / "cache"))
        patch.setenv("IPYTHONDIR", str(place / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(place / "runtime"))
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(place)}}).execute()
    return list(notebook.cells)


def shown(cell: Any, kind: str = "text/html") -> list[str]:
    """What a cell shows of a kind: its progress, then what it ends with."""
    return [output["data"][kind] for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.slow
def test_a_run_shows_itself_as_a_table_with_intervals(cells: list[Any]) -> None:
    *_, table = shown(cells[0])
    row = next(row for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL) if ">system<" in row)
    assert "recall@10" in table
    assert len(re.findall(r">0\.\d{3}<br><small[^>]*>0\.\d{3} – 0\.\d{3}<", row)) >= 3
    assert ">bm25<" in table


@pytest.mark.slow
def test_a_bar_of_progress_is_gone_in_the_end(cells: list[Any]) -> None:
    bars = [one for cell in cells for one in shown(cell) if "<progress" in one]
    assert bars == []


@pytest.mark.slow
def test_nothing_is_printed_but_what_the_page_prints(cells: list[Any]) -> None:
    printed = [output.text for cell in cells for output in cell.outputs if output.output_type == "stream"]
    assert printed == ["fusion.dense_wieght: no such key; did you mean fusion.dense_weight of fusion=weighted_sum?\n"]
