"""The documentation builds as a site, strictly: no page is lost, no link is broken, nothing is fetched to read it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.config import conf_folder

for _needed in ("sphinx", "furo", "myst_parser"):
    pytest.importorskip(_needed, reason="the extra `docs` is not installed")

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("site")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    """Built with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q"]
    command += ["-d", str(folder / "doctrees"), str(root / "docs"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_the_site(site: Path, root: Path) -> None:
    written = [page.relative_to(root / "docs").with_suffix(".html") for page in (root / "docs").rglob("*.md")]
    assert [str(page) for page in written if page.parts[0] != "examples" and not (site / page).exists()] == []


def test_every_component_has_a_page_with_its_settings(site: Path) -> None:
    for group, choices in conf_folder.groups().items():
        page = (site / "components" / f"{group}.html").read_text()
        assert [choice for choice in choices if f"conf/{group}/{choice}.yaml" not in page] == []
    fusion = re.sub("<[^>]*>", "", (site / "components" / "fusion.html").read_text())
    assert "floor_ratio: 0.92 # a document found by both scores" in fusion
    assert "memory-lancedb-pro, fuseResults" in fusion


def test_reading_it_asks_nobody(site: Path) -> None:
    """Neither scripts nor styles, fonts nor pictures come from elsewhere; formulas are MathML."""
    fetched = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    pages = {page: page.read_text() for page in site.rglob("*.html")}
    assert {str(page): found[0] for page, text in pages.items() if (found := fetched.search(text))} == {}
    styles = "".join(page.read_text() for page in site.rglob("*.css"))
    assert re.search(r"url\([\"']?(?:https?:)?//|@import", styles) is None
    assert "<math" in pages[site / "mathematics.html"]
