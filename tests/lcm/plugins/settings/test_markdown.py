"""The tables of docs/export.md are the tables that export reads."""

import re
from pathlib import Path

import pytest

from lcm.plugins.settings.tables import TABLES
from tests.support.settings_markdown import settings_table


@pytest.mark.parametrize("name", TABLES)
def test_the_documented_table_is_the_one_in_use(name: str, root: Path) -> None:
    text = (root / "docs" / "export.md").read_text()
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    assert found is not None
    assert found[1] == settings_table(TABLES[name])
