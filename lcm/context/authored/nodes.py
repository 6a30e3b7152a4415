"""An authored file to nodes: what is always shown, what is shown as far as it fits, and what is found by ranking."""

from collections.abc import Sequence

from lcm.compaction.guidance.reading import PhraseRules
from lcm.context.authored.blocks import Block, blocks
from lcm.context.authored.front_matter import front_matter
from lcm.context.authored.lines import lines_of
from lcm.records.document import AuthoredNode, AuthoredTier
from lcm.records.rules import Rules
from lcm.token_estimator.code_points import CodePoints

_TOKENS = CodePoints(rounding="up", empty_tokens=1)


def nodes_of(source: str, text: str, frame: PhraseRules, *, rules: Rules, authority: float = 1.0) -> list[AuthoredNode]:
    """The nodes of one file, in order.

    Front matter and every item of a list are hard; quotes, and paragraphs that the frame takes for guidance, are soft;
    other paragraphs, headings, code and HTML are variants. Variants alone carry the hop targets of the front matter.

    Args:
        source: the name of the file: the node ids start with it.
        text: of the whole file; a byte order mark is not part of its first line.
        frame: says which paragraphs are guidance.
        rules: as `blocks` and `front_matter` take them.
        authority: of every node, in [0, 1].

    Source: libravdb memory 1.4.4.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    lines = lines_of(text.removeprefix(mark), len(mark.encode()))
    head = front_matter(lines, rules)
    hop_targets = head.hop_targets if head else ()
    placed: list[tuple[str, str, int, AuthoredTier, int]] = []
    if head is not None:
        placed.append(("YAMLFrontmatter", head.text, 0, "hard", 0))
    for block in blocks(lines[head.length if head else 0 :], rules):
        mask = frame.read(block.text).mask if block.kind == "Paragraph" else 0
        placed.append((*block, _tier(block, mask), mask))
    counted = _TOKENS.count([words for _, words, *_ in placed])
    return [
        AuthoredNode(
            node_id=f"{source}#{ordinal:06d}",
            source=source,
            tier=tier,
            kind=kind,
            text=words,
            position=position,
            ordinal=ordinal,
            tokens=tokens,
            authority=authority,
            modality_mask=mask,
            hop_targets=hop_targets if tier == "variant" else (),
        )
        for ordinal, ((kind, words, position, tier, mask), tokens) in enumerate(zip(placed, counted, strict=True))
    ]


def in_authored_order(nodes: Sequence[AuthoredNode]) -> list[AuthoredNode]:
    """By source, position, ordinal and id."""
    return sorted(nodes, key=lambda node: (node.source, node.position, node.ordinal, node.node_id))


def dangling_hops(nodes: Sequence[AuthoredNode]) -> list[tuple[str, str]]:
    """The (source, target) of every hop that leads to no variant: nothing can be found by it."""
    variants = {node.node_id for node in nodes if node.tier == "variant"}
    hops = dict.fromkeys((node.source, target) for node in nodes for target in node.hop_targets)
    return [(source, target) for source, target in hops if target not in variants]


def _tier(block: Block, mask: int) -> AuthoredTier:
    if block.kind == "ListItem":
        return "hard"
    return "soft" if block.kind == "Blockquote" or mask else "variant"
