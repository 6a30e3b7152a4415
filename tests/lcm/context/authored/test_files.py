"""Authored files as a component."""

import logging
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lcm.compaction.guidance.scanner import ByteScanner
from lcm.context.authored import AuthoredFiles, check_hard_budget
from lcm.errors import LcmError
from lcm.records.document import AuthoredNode

FRAME = ByteScanner()


def files(*paths: Path, **settings: object) -> AuthoredFiles:
    return AuthoredFiles(FRAME, [str(path) for path in paths], **settings)  # type: ignore[arg-type]


def nodes_of(*paths: Path, **settings: object) -> list[AuthoredNode]:
    return files(*paths, **settings).nodes(incidents=Counter())


def test_nothing_is_opened_until_nodes_are_asked_for(tmp_path: Path) -> None:
    authored = files(tmp_path / "later.md")
    with pytest.raises(LcmError):
        authored.nodes(incidents=Counter())
    (tmp_path / "later.md").write_text("- a\n")
    assert [node.text for node in authored.nodes(incidents=Counter())] == ["a"]
    assert nodes_of() == []


def test_nodes_come_in_authored_order_with_ids_that_differ(tmp_path: Path) -> None:
    for name in ("b/AGENTS.md", "a/AGENTS.md", "a/souls.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("- one\n- two\n")
    nodes = nodes_of(tmp_path / "b", tmp_path / "a")
    assert [node.node_id for node in nodes] == [
        f"{source}#00000{n}" for source in ("a/AGENTS.md", "b/AGENTS.md", "souls.md") for n in (0, 1)
    ]
    assert nodes == nodes_of(tmp_path / "a", tmp_path / "b")


def test_of_a_vault_tagged_notes_are_read_and_those_that_somebody_chose(tmp_path: Path) -> None:
    for name, text in {"tagged.md": "#a b", "plain.md": "b", "memory.md": "b"}.items():
        (tmp_path / name).write_text(text)

    def sources(*paths: Path, **settings: object) -> list[str]:
        return [node.source for node in nodes_of(*paths, **settings)]

    assert sources(tmp_path) == ["memory.md", "plain.md", "tagged.md"]
    assert sources(tmp_path, adapter="obsidian") == ["memory.md", "tagged.md"]
    assert sources(tmp_path, adapter="obsidian", include=["p*"]) == ["memory.md", "plain.md"]
    assert sources(tmp_path / "plain.md", adapter="obsidian") == ["plain.md"]


def test_settings_reach_the_nodes(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\r\ntitle: x\r\n---\r\n- a\r\n  - b\r\n")
    (head, item) = nodes_of(path, authority=0.25)
    assert (head.text, item.text, item.authority) == ("title: x", "a b", 0.25)
    original = nodes_of(path, rules="original")
    assert [(node.kind, node.text) for node in original] == [("Heading", "title: x"), ("ListItem", "ab")]


UNREADABLE = [
    (b"caf\xe9\n", {}, r"is not UTF-8 at byte 3: save it as UTF-8, or keep it out by authored\.exclude"),
    (b"x" * 11, {"max_file_bytes": 10}, r"is larger than 10 bytes: raise authored\.max_file_bytes, or"),
    (b"> " * 200 + b"x", {}, "whose blocks are nested 100 deep: make it plainer, or"),
]


def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    for content, settings, reason in UNREADABLE:
        path.write_bytes(content)
        with pytest.raises(LcmError, match=r"^authored\.paths leads to '.*a\.md', (which|whose)") as caught:
            nodes_of(path, **settings)
        assert caught.match(reason)
        assert "\n" not in str(caught.value)
    path.write_bytes(b"- 345678\n\n")
    assert len(nodes_of(path, max_file_bytes=10)) == 1, "just of the size"
    path.unlink()
    path.symlink_to(tmp_path / "gone.md")
    with pytest.raises(LcmError, match=r"cannot be read \(No such file or directory\): mend that, or"):
        nodes_of(tmp_path)


def test_more_hard_text_than_allowed_is_refused_with_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"- {'x' * 40}\n\n{'y' * 400}\n")
    assert len(nodes_of(tmp_path, max_hard_tokens=10)) == 2
    with pytest.raises(LcmError, match=r"takes 10 tokens .*, its budget is 9, .* or raise authored\.max_hard_tokens$"):
        nodes_of(tmp_path, max_hard_tokens=9)


def test_a_hop_that_leads_nowhere_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.md").write_text("---\nhop_targets: [a.md#000001, b.md#000000]\n---\none\n\ntwo\n")
    incidents = Counter[str]()
    with caplog.at_level(logging.WARNING):
        assert len(files(tmp_path).nodes(incidents=incidents)) == 3
    (message,) = caplog.messages
    assert message.startswith("hop_targets of 'a.md' names 'b.md#000000', which is no variant block")
    assert incidents == {"hop targets that lead nowhere": 1}


HARD = AuthoredNode("a.md#000000", "a.md", "hard", "ListItem", "x", 0, 0, tokens=30)


def test_hard_text_may_fill_its_budget_and_no_other_tier_counts() -> None:
    check_hard_budget([HARD, HARD], 60)
    check_hard_budget([HARD], 3 * 0.1 * 100)  # 30.000000000000004
    check_hard_budget([HARD, replace(HARD, tier="soft"), replace(HARD, tier="variant")], 30)
    check_hard_budget([], 0)


def test_beyond_it_both_numbers_and_the_largest_file_are_named() -> None:
    other = replace(HARD, source="b.md", tokens=45)
    expected = (
        r"^the hard authored text takes 75 tokens \(45 of them in 'b.md'\), its budget is 74.5, and it is never cut: "
        r".*, or raise authored.max_hard_tokens$"
    )
    with pytest.raises(LcmError, match=expected):
        check_hard_budget([HARD, other], 74.5)


def test_neither_links_out_of_a_folder_nor_pipes_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (tmp_path / "canary.md").write_text("The canary sings.")
    (folder / "own.md").write_text("Goats eat hay.")
    (folder / "same.md").symlink_to(folder / "own.md")
    (folder / "out.md").symlink_to(tmp_path / "canary.md")
    os.mkfifo(folder / "pipe.md")
    found = nodes_of(folder)
    assert {node.source for node in found} == {"own.md"}
    assert "out.md is no file below" in caplog.text
    with pytest.raises(LcmError, match="neither a file nor a folder: take it out"):
        nodes_of(folder / "pipe.md")
