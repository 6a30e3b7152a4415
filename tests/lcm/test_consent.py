"""What the user allows is written as users write it."""

import shlex

import pytest

from lcm.consent import COMMANDS, HOSTS, allowed_commands, refused_host, words_of_command


@pytest.mark.parametrize(
    ("named", "is_allowed"),
    [
        ("http://127.0.0.1:18098/", True),
        ("HTTP://127.0.0.1:18098/v1", True),
        ("127.0.0.1:18098", True),
        ("127.0.0.1", True),
        ("http://127.0.0.1/", False),
        ("https://127.0.0.1:18099/", False),
    ],
)
def test_a_host_is_named_by_itself_with_its_port_or_by_a_url(named, is_allowed, monkeypatch):
    monkeypatch.setenv(HOSTS, f"api.example.org, {named}")
    assert (refused_host("http://127.0.0.1:18098/v1/chat") is None) == is_allowed


def test_a_command_may_hold_several_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = {("python3", "-c", "import sys\nprint('it''s')\n"), ("grep", "a b"), ("sh", "-c", "one\rtwo")}
    monkeypatch.setenv(COMMANDS, "\n".join(map(shlex.join, sorted(commands))) + "\n\nunclosed 'quotation\n")
    assert allowed_commands() == commands


def test_a_map_among_the_words_of_a_command_is_words_with_an_equals_sign() -> None:
    command = ["node", "bridge.mjs", {"add": "agent_end", "clock": False, "n": 1}]
    assert words_of_command(command) == ("node", "bridge.mjs", "add=agent_end", "clock=false", "n=1")
