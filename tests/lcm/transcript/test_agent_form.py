"""Messages of every format in one notation, each result a message of its own."""

from dataclasses import replace
from pathlib import Path

from lcm.records.conversation import Message, Part
from lcm.token_estimator import Utf16Units
from lcm.transcript.large_files import intercepted
from lcm.transcript.reading import READERS, read_transcripts
from lcm.transcript.rendering import agent_messages, calls_of, result_id_of, runtime_messages, turn_of
from tests.lcm.context.assembly.recorded import assistant, call, message, result


def test_results_within_a_users_message_become_messages_before_its_words() -> None:
    native = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "plain"},
            {"type": "text", "text": "and then?"},
            {"type": "tool_result", "tool_use_id": "c2", "is_error": True, "content": [{"type": "text", "text": "no"}]},
        ],
    }
    first, second, words = runtime_messages(message(native))
    assert (first["role"], first["toolCallId"], first["content"]) == ("toolResult", "c1", [_text("plain")])
    assert (second["toolCallId"], second["content"], second["isError"]) == ("c2", [_text("no")], True)
    assert words == {"role": "user", "content": "and then?"}


def test_calls_of_openai_chat_become_blocks_and_its_results_their_answers() -> None:
    function = {"name": "read", "arguments": '{"p": 1}'}
    native = {"role": "assistant", "content": "Let me see.", "tool_calls": [{"id": "c1", "function": function}]}
    [said] = runtime_messages(message(native))
    arguments = {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"p": 1}}
    assert said == {"role": "assistant", "content": [_text("Let me see."), arguments]}
    answer = {"role": "tool", "tool_call_id": "c1", "name": "read", "content": "42"}
    [found] = runtime_messages(message(answer))
    assert found == {"role": "toolResult", "content": [_text("42")], "toolCallId": "c1", "toolName": "read"}


def test_what_nobody_answers_is_words_and_the_system_speaks_as_a_user() -> None:
    lost = message({"role": "toolResult", "content": "lost"})
    assert runtime_messages(lost) == [{"role": "assistant", "content": [_text("lost")]}]
    part = Part("tool", tool_name="search", tool_input='{"q":"x"}')
    [shown] = runtime_messages(Message("m", "assistant", "", "s", parts=(part,)))
    assert shown["content"] == [_text('[call of search: {"q":"x"}]')]
    assert calls_of(shown) == []
    for role in ("system", "developer"):
        assert runtime_messages(message({"role": role, "content": "rules"})) == [{"role": "user", "content": "rules"}]


def test_pieces_of_a_turn_are_known_by_it() -> None:
    native = {"type": "message", "id": "msg_1", "role": "assistant", "content": []}
    piece = message(native)
    piece = replace(piece, envelope={**piece.envelope, "record": {}, "within": "message"})
    assert turn_of(piece) == "msg_1"
    assert turn_of(assistant("whole")) == ""
    assert turn_of(replace(piece, role="user")) == ""


def test_every_reader_of_agents_gives_calls_and_results_with_equal_ids(root: Path) -> None:
    with_tools = {"chat", "claude_code", "codex", "gemini", "goose", "openclaw", "parquet", "swe_agent", "tau_bench"}
    assert with_tools <= {reader.name for reader in READERS}

    for path in sorted((root / "tests/recordings").iterdir()):
        transcripts = read_transcripts(path)
        said = [one for each in transcripts for spoken in each.messages for one in runtime_messages(spoken)]
        calls = [call_id for one in said for call_id, _ in calls_of(one)]
        results = [result_id_of(one) for one in said if one["role"] == "toolResult"]
        if path.name.split(".")[0] in with_tools and path.name != "chat.session.json":
            assert results, path.name
        if path.name != "cursor.jsonl":  # Cursor records no results
            assert sorted(results) == sorted(calls), path.name


def test_a_large_result_is_shown_as_its_reference_and_still_answers_its_call() -> None:
    large = intercepted(result("c1", "word " * 2000), 100, Utf16Units(), lambda text, name, mime: "about words")
    [shown] = runtime_messages(large)
    assert (shown["role"], result_id_of(shown)) == ("toolResult", "c1")
    assert "about words" in shown["content"][0]["text"]
    assert "word word" not in str(shown)


def test_openclaws_own_messages_stay_as_they_are_and_nothing_in_a_message_changes() -> None:
    own = {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [_text("words")], "isError": False}
    assert agent_messages(result("c1", "words")) == [own]
    said = call("c1")
    before = repr(said)
    runtime_messages(said)
    assert repr(said) == before


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}
