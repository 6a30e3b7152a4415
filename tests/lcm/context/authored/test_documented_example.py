"""The example of the documentation is what comes out of it."""

import re

from lcm.compaction.guidance.clauses import ClauseRules
from lcm.context.authored import nodes_of
from lcm.writing.dream import diary_entries
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "authored.md").read_text()
AGENTS, DIARY = re.findall(r"^```markdown\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_nodes_of_the_example_are_those_of_the_table() -> None:
    nodes = nodes_of("AGENTS.md", AGENTS, ClauseRules(), rules="corrected")
    rows = re.findall(r"^\| `(AGENTS\.md#\d+)` ?(.*?) \| (\w+) \|", PAGE, re.MULTILINE)
    assert rows == [(node.node_id, "" if node.kind == "YAMLFrontmatter" else node.text, node.tier) for node in nodes]


def test_the_bullet_of_the_example_is_kept() -> None:
    (entry,) = diary_entries(DIARY)
    assert entry.is_admitted
