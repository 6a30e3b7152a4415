"""Tool results: asked for by what the tool was called with."""

from eval.questions.kinds import ToolResult
from lcm.records.conversation import Part
from tests.support.recorded_talk import Line, drafts, recorded


def call(arguments: str, call_id: str = "one", name: str = "read_file") -> Line:
    return ("assistant", "", 0, (Part("tool", tool_call_id=call_id, tool_name=name, tool_input=arguments),))


def result(text: str, call_id: str = "one") -> Line:
    return ("tool", text, 0, (Part("text", text=text, tool_call_id=call_id),))


PATH = '{"path": "src/harbour/ferry.py", "lines": [1, 20]}'


def test_the_name_and_the_arguments_ask_for_the_result() -> None:
    (draft,) = drafts(ToolResult(), recorded([call(PATH), result("class Ferry: ...")]))
    assert (draft.place, draft.text, draft.evidence) == (0, "read file src/harbour/ferry.py 1 20", (1,))
    (draft,) = drafts(ToolResult(), recorded([call("*** Begin Patch: ferry.py"), result("Done patching")]))
    assert draft.text == "read file *** Begin Patch: ferry.py"  # arguments that are no JSON are words
    silent = [call("{}"), result("a whole listing"), call(PATH, "two"), result("...", "two")]
    assert drafts(ToolResult(), recorded(silent)) == []  # one call says little, one result has no words


def test_results_of_equal_calls_and_their_copies_are_evidence() -> None:
    lines = [
        *(call(PATH, "one"), result("class Ferry: ...", "one"), call(PATH, "two"), result("No such file", "two")),
        *(call('{"path": "src/other/place.py"}', "three"), result("No such file", "three")),
    ]
    first, other = drafts(ToolResult(), recorded(lines))
    assert first.evidence == (1, 3, 5)
    assert other.evidence == (3, 5)


def test_a_result_belongs_to_the_last_call_under_its_id() -> None:
    lines = [call(PATH), call('{"path": "src/other/place.py"}'), result("def place(): ...")]
    assert [draft.place for draft in drafts(ToolResult(), recorded(lines))] == [1]
