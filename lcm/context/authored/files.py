"""Documents that somebody wrote for the agent, as Markdown files."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from lcm.checks import check_choice, check_range
from lcm.compaction.guidance.reading import PhraseRules
from lcm.context.authored.front_matter import is_tagged
from lcm.context.authored.nodes import dangling_hops, in_authored_order, nodes_of
from lcm.context.authored.selection import SelectedFile, selected_files
from lcm.errors import LcmError
from lcm.given import opened_as_is
from lcm.records.document import AuthoredNode
from lcm.records.rules import Rules

Adapter = Literal["generic", "obsidian"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AuthoredFiles:
    """Markdown files, read when they are asked for: `lcm.context.authored.nodes` says what becomes of their blocks.

    Source: libravdb memory 1.4.4.
    """

    frame: PhraseRules
    """Says which paragraphs are guidance."""
    paths: Sequence[str] = ()
    """Files, folders, and globs of both; relative ones lie below the folder that the process runs in."""
    adapter: Adapter = "generic"
    """`generic` takes every file; `obsidian`, of a folder, notes that are tagged, or that `include` names."""
    include: Sequence[str] = ()
    """Patterns of file names below a folder, `*` = anything, `/` too; empty = all."""
    exclude: Sequence[str] = ()
    """Patterns of what to leave out there; `memory.md` never is."""
    rules: Rules = "corrected"
    """`original`: nothing stands between the blocks within one list item or quote, and front matter is seen only where
    LF ends its marks."""
    authority: float = 1.0
    """How far the memory trusts what is authored, in [0, 1]: 1 of its core documents, 0 of others."""
    max_file_bytes: int = 1_048_576
    max_hard_tokens: int | None = None
    """More hard text is refused when it is read; None = the assembly alone decides."""

    def __post_init__(self) -> None:
        for name in ("paths", "include", "exclude"):
            if isinstance(getattr(self, name), str) or not all(isinstance(one, str) for one in getattr(self, name)):
                raise ValueError(f"{name} must be a list of texts, got {getattr(self, name)!r}")
        check_choice(self, adapter=Adapter, rules=Rules)
        check_range(self, "authority", ge=0, le=1)
        check_range(self, "max_file_bytes", gt=0)
        check_range(self, "max_hard_tokens", ge=0, or_null=True)

    @property
    def idle_because(self) -> str | None:
        return None if self.paths else "authored.paths names no file"

    def nodes(self, *, incidents: Counter[str]) -> list[AuthoredNode]:
        found: list[AuthoredNode] = []
        for file in selected_files(self.paths, self.include, self.exclude):
            text = self._text(file)
            if file.is_wanted or self.adapter == "generic" or is_tagged(text):
                found += self._nodes(file, text)
        if self.max_hard_tokens is not None:
            check_hard_budget(found, self.max_hard_tokens)
        for source, target in dangling_hops(found):
            _log.warning(
                "hop_targets of %r names %r, which is no variant block: hard and soft ones are shown, not found",
                source,
                target,
            )
            incidents["hop targets that lead nowhere"] += 1
        return in_authored_order(found)

    def _text(self, file: SelectedFile) -> str:
        try:
            with opened_as_is(file.path) as stream:
                raw = stream.read(self.max_file_bytes + 1)
        except OSError as error:
            raise LcmError(
                f"authored.paths leads to {str(file.path)!r}, which cannot be read ({error.strerror}): mend that, or "
                "keep it out by authored.exclude"
            ) from error
        if len(raw) > self.max_file_bytes:
            raise LcmError(
                f"authored.paths leads to {str(file.path)!r}, which is larger than {self.max_file_bytes} bytes: raise "
                "authored.max_file_bytes, or keep it out by authored.exclude"
            )
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LcmError(
                f"authored.paths leads to {str(file.path)!r}, which is not UTF-8 at byte {error.start}: save it as "
                "UTF-8, or keep it out by authored.exclude"
            ) from error

    def _nodes(self, file: SelectedFile, text: str) -> list[AuthoredNode]:
        try:
            return nodes_of(file.name, text, self.frame, rules=self.rules, authority=self.authority)
        except LcmError as error:
            raise LcmError(
                f"authored.paths leads to {str(file.path)!r}, whose {error}: make it plainer, or keep it out by "
                "authored.exclude"
            ) from error


def check_hard_budget(nodes: Sequence[AuthoredNode], budget_tokens: float) -> None:
    """Refuse hard nodes that take more than their budget.

    Args:
        nodes: all that is authored; those of other tiers do not count.
        budget_tokens: of all hard nodes together. As a share of a prompt's: tokens of the prompt x share of it that
            memory may take x share of that for hard text.

    Raises:
        LcmError: with what they take, the budget, and where most of it stands.

    Source: libravdb memory 1.4.4.
    """
    taken: dict[str, int] = {}
    for node in nodes:
        if node.tier == "hard":
            taken[node.source] = taken.get(node.source, 0) + node.tokens
    total = sum(taken.values())
    if total <= budget_tokens + 1e-9:
        return
    most = max(taken, key=lambda source: taken[source])
    raise LcmError(
        f"the hard authored text takes {total} tokens ({taken[most]} of them in {most!r}), its budget is "
        f"{budget_tokens:g}, and it is never cut: make list items paragraphs or quotes, shorten front matter, "
        "or raise authored.max_hard_tokens"
    )
