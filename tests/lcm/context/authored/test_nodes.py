"""Nodes: which tier a block is of, and what it carries."""

from lcm.compaction.guidance.scanner import ByteScanner
from lcm.context.authored import dangling_hops, in_authored_order, nodes_of
from lcm.records.document import AuthoredNode

TEXT = """\
---
hop_targets: AGENTS.md#000005
---

# Rules

- Quote the file.

You must be brief.

> Kindness first.

The harbour lies north.
"""


def nodes(text: str = TEXT, source: str = "AGENTS.md") -> list[AuthoredNode]:
    return nodes_of(source, text, ByteScanner(), rules="corrected", authority=0.5)


def test_front_matter_and_items_are_hard_quotes_and_rules_soft_and_the_rest_is_found() -> None:
    assert [(node.tier, node.kind, node.text) for node in nodes()] == [
        ("hard", "YAMLFrontmatter", "hop_targets: AGENTS.md#000005"),
        ("variant", "Heading", "Rules"),
        ("hard", "ListItem", "Quote the file."),
        ("soft", "Paragraph", "You must be brief."),
        ("soft", "Blockquote", "Kindness first."),
        ("variant", "Paragraph", "The harbour lies north."),
    ]


def test_nodes_are_numbered_placed_and_counted() -> None:
    found = nodes()
    assert [node.node_id for node in found] == [f"AGENTS.md#00000{n}" for n in range(6)]
    assert [node.ordinal for node in found] == list(range(6))
    assert [node.position for node in found] == [0, *(TEXT.index(node.text, 40) for node in found[1:])]
    assert [node.tokens for node in nodes("𠮷野\n\nabcd\n\nabcde\n")] == [1, 1, 2], "a quarter of the code points"
    assert nodes("---\n---\n")[0].tokens == 1


def test_only_variants_carry_hop_targets_and_only_promoted_paragraphs_a_mask() -> None:
    assert {node.tier for node in nodes() if node.hop_targets} == {"variant"}
    assert [node.modality_mask for node in nodes()] == [0, 0, 0, 2, 0, 0]
    assert {node.authority for node in nodes()} == {0.5}


def test_a_byte_order_mark_hides_no_front_matter_and_no_heading() -> None:
    marked = nodes("\ufeff" + TEXT)
    assert [node.text for node in marked] == [node.text for node in nodes()]
    assert [node.position for node in marked[1:]] == [node.position + 3 for node in nodes()[1:]]


def test_authored_order_is_by_source_then_position() -> None:
    first, second = nodes(source="a.md"), nodes(source="b.md")
    assert in_authored_order([*reversed(second), *reversed(first)]) == [*first, *second]


def test_a_hop_that_leads_to_no_variant_dangles() -> None:
    assert dangling_hops(nodes()) == []
    assert dangling_hops(nodes(TEXT.replace("000005\n---", "000002\n---"))) == [("AGENTS.md", "AGENTS.md#000002")]
