"""What an agent did with its tools, a line a step."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lcm.compaction.lossless.source_text import step
from lcm.records.conversation import Message, Part
from lcm.transcript.parts import decompose
from tests.lcm.compaction.contexts import BEGIN


def call(name: str, **arguments: Any) -> Part:
    return Part("tool", tool_call_id="1", tool_name=name, tool_input=json.dumps(arguments))


def result(text: str, **envelope: Any) -> Message:
    said = decompose({"role": "toolResult", "toolCallId": "1", "content": [{"type": "text", "text": text}], **envelope})
    return Message("m", said.role, said.content, "s", BEGIN, None, said.parts, said.envelope)


CODE = "class Kettle:\n" + "\n".join(f"    def boil{i}(self): ..." for i in range(9))
COMMIT = "> check\nChecked 232 files in 119ms.\n[main 1507f8b] Add the plan\n 1 file changed, 12 insertions(+)\na\nb"
LOG = "> tsc --noEmit\n\na.ts(8,49): error TS2307: Cannot find module '../x'.\nmore\n\n\nCommand exited with code 2"


STEPS = [
    (call("write", path="docs/plan.md", content="x" * 900), result("Successfully wrote 48506 bytes to it"),
     "wrote docs/plan.md: 48506 bytes"),
    (call("Edit", file_path="src/a.py", old_string="b", new_string="c"), result("src/a.py has been updated."),
     "edited src/a.py"),
    (call("edit", path="src/a.py", oldText="b"), result("Could not find the exact text.", isError=True),
     "edited src/a.py: failed; Could not find the exact text."),
    (call("read", path="src/kettle.py"), result(CODE),
     "read src/kettle.py: Python, 10 lines: defines Kettle, boil0, boil1, boil2, boil3 …"),
    (call("bash", command="cd /home/user/x && npm run check"), result(LOG, isError=True),
     "ran `cd /home/user/x && npm run check`: exit code 2; a.ts(8,49): error TS2307: Cannot find module '../x'."),
    (call("bash", command="git commit -am plan"), result(COMMIT, isError=False),
     "ran `git commit -am plan`: [main 1507f8b] Add the plan; 1 file changed, 12 insertions(+)"),
    (call("bash", command="npm test"), result("> check\n\n(no output)", isError=False), "ran `npm test`: ok"),
    (call("bash", command="npm test"), result("(no output)"), "ran `npm test`"),
    (call("bash", command="seq 9"), result("\n".join(f"line {i}" for i in range(9))),
     "ran `seq 9`: output, 9 lines"),
    (call("find_seat", flight="HAT069", rows=[1, 2]), result('{"seat": "9F", "price": {"usd": 121}}'),
     "find_seat flight=HAT069, rows=1, 2: seat 9F, price usd 121"),
    (call("bash", command="ls"), None, "ran `ls`: no result"),
    (None, result("Switched to a new branch 'x'"), "a tool: Switched to a new branch 'x'"),
    (Part("tool", tool_call_id="1", tool_name="lookup", tool_input="kettles, red"), result("three"),
     "lookup input=kettles, red: three"),  # what is no JSON is told as it is
]  # fmt: skip


def test_a_step_names_action_object_and_outcome() -> None:
    assert [step(made, returned) for made, returned, _ in STEPS] == [told for *_, told in STEPS]


@given(st.text(max_size=400), st.text(max_size=600), st.sampled_from(["bash", "read", "write", "edit", "query"]))
def test_a_step_is_one_short_line(command: str, output: str, name: str) -> None:
    line = step(call(name, command=command, path="a/b.py"), result(output))
    assert len(line.splitlines()) == 1
    assert len(line) < 2 * 240 + 40
