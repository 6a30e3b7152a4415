"""The tables of docs/export.md are the tables that export reads."""

import re
from pathlib import Path

import pytest

from lcm.plugins.settings.tables import TABLES
from tests.lcm.plugins.settings.conftest import KNOWN
from tests.support.settings_markdown import settings_table


@pytest.mark.parametrize("known", KNOWN)
def test_the_documented_table_is_the_one_in_use(known: str, root: Path) -> None:
    table, first = KNOWN[known], TABLES[KNOWN[known].name]
    text = (root / "docs" / "export.md").read_text()
    found = re.search(rf"<!-- {re.escape(known)} -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    assert found is not None
    assert found[1] == settings_table(table, None if table is first else first)
