from lcm.compaction.summarizer.passages import read_source


def test_a_time_holds_until_the_next_and_a_range_begins_anew() -> None:
    source = read_source(
        "[2026-03-01 09:05 UTC]\nOne. Two.\n\nThree.\n[2026-03-01 10:00 UTC - 2026-03-01 11:00 UTC]\n"
        "[2026-03-01 10:30 UTC] Four."
    )
    first, second = "2026-03-01 09:05 UTC", "2026-03-01 10:30 UTC"
    assert [(s.text, s.place, s.time) for s in source.sentences] == [
        *(("One.", 0, first), ("Two.", 0, first), ("Three.", 1, first)),
        ("Four.", 0, second),
    ]
    assert {(s.time, s.hour) for s in source.sentences} == {(first, "2026-03-01 09"), (second, "2026-03-01 10")}
    undated = read_source("[undated] user:\nOne.\n\n[undated - undated]\n[undated] assistant: Two.").sentences
    assert [(s.text, s.speaker, s.place, s.hint) for s in undated] == [
        ("One.", "user", 0, "[undated] "),
        ("Two.", "assistant", 0, "[undated] "),
    ]


def test_a_speaker_stands_behind_a_time_or_in_a_dialogue() -> None:
    def speakers(text: str) -> list[str]:
        return [sentence.speaker for sentence in read_source(text).sentences]

    assert speakers("#Person1#: Hi. There.\n#Person2#: Ho.\n#Person1#: No.\n#Person2#: Yes.") == [
        "#Person1#", "#Person1#", "#Person2#", "#Person1#", "#Person2#",
    ]  # fmt: skip
    assert speakers("[2026-03-01 09:05 UTC]\nuser: Hi.\nNote: more.") == ["user", ""]
    assert speakers("Some prose.\nmodel: x\nMore prose.\nmodel: y\nAnd more.\nAnd more.") == [""] * 6


def test_code_is_told_from_prose() -> None:
    code = ["const a = b;", '{"a": [1, 2]}', "    indented text", "let x: Map<string> = new Map()", "f(g(x), h(y))"]
    prose = ["It works.", "It costs $5 & more.", "Yes (I saw it).", "Call f(x) there, at once.", "Alas, 它坏了。"]
    found = read_source("\n".join([*code, *prose])).sentences
    assert [sentence.text for sentence in found if sentence.is_prose] == prose
    assert [sentence.text for sentence in found if not sentence.is_prose] == ["(code, 5 lines)"]


def test_the_last_lines_of_earlier_summaries_are_no_sentences() -> None:
    source = read_source("One.\nFiles: a.py (created)\nExpand for details about: logs, prices\nTwo.")
    assert [sentence.text for sentence in source.sentences] == ["One.", "Two."]
    assert source.footers == ("logs, prices",)


SESSION = """\
[2026-03-01 09:05 UTC] user:
Never push to main. Can you mend the parser?

[2026-03-01 09:06 UTC] assistant:
The cause is a loop:
```python
def parse(text):
    while True:
        pass
    return text
```
- It never ends.

[2026-03-01 09:07 UTC] tool:
ran `npm test`: exit code 1; 3 failed

[2026-03-01 09:08 UTC] tool:
edited src/parser.py

[2026-03-01 09:09 UTC] tool:
ran `npm test`: 30 passed"""


def test_speakers_above_their_words_are_kept_with_every_sentence() -> None:
    source = read_source(SESSION)
    assert [(s.speaker, s.kind, s.text) for s in source.sentences] == [
        ("user", "rule", "Never push to main."),
        ("user", "instruction", "Can you mend the parser?"),
        ("assistant", "filler", "The cause is a loop:"),
        ("assistant", "plain", "(Python, 4 lines: defines parse)"),
        ("assistant", "plain", "It never ends."),
        ("tool", "change", "edited src/parser.py"),
        ("tool", "change", "ran `npm test`: 30 passed (before: exit code 1) ×2"),
    ]
    assert source.rules == ["Never push to main."]


def test_a_summary_is_read_as_it_was_written() -> None:
    summary = (
        "[2026-03-01 09:05 UTC] user: Never push to main.\nassistant: The cause is a loop.\n  It never ends.\n"
        "tool: ran `npm test`: 30 passed ×2\ntool: ran `npm test`: exit code 1\nFiles: none"
    )
    assert [(s.speaker, s.text) for s in read_source(summary).sentences] == [
        ("user", "Never push to main."),
        ("assistant", "The cause is a loop."),
        ("assistant", "It never ends."),
        ("tool", "ran `npm test`: exit code 1 ×3"),
    ]


def test_pasted_output_is_no_instruction_and_its_errors_are_told() -> None:
    log = "\n".join([f"    at f{i} (/src/a{i}.js:{i})" for i in range(9)] + ["TypeError: x is not a function;"])
    found = read_source(f"[2026-03-01 09:05 UTC] user:\nwhat is this?\n{log}").sentences
    assert [(s.kind, s.text) for s in found] == [
        ("instruction", "what is this?"),
        ("plain", "(output, 10 lines)"),
        ("error", "TypeError: x is not a function;"),
    ]


def test_what_ended_otherwise_than_the_summary_before_told_is_told_with_it() -> None:
    before = "[2026-03-01 09:05 UTC] tool: ran `npm test`: exit code 1; 3 failed\ntool: read a.py: Python, 3 lines"
    now = "[2026-03-01 10:05 UTC] tool: ran `npm test`: 30 passed\ntool: read a.py: Python, 3 lines"
    assert [(s.kind, s.text) for s in read_source(now, read_source(before).sentences).sentences] == [
        ("change", "ran `npm test`: 30 passed (before: exit code 1)"),
        ("look", "read a.py: Python, 3 lines"),
    ]
    again = read_source(before, read_source(now).sentences).sentences
    assert again[0].text == "ran `npm test`: exit code 1; 3 failed (before: 30 passed)"


def test_a_message_of_an_empty_block_says_nothing() -> None:
    for fence in ("```", "```\n```"):
        found = read_source(
            f"[2026-03-01 09:05 UTC] user:\n{fence}\n[2026-03-01 09:06 UTC] user:\nhello there, again"
        ).sentences
        assert [one.text for one in found] == ["hello there, again"]
