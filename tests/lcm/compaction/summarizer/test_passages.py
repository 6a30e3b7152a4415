from lcm.compaction.summarizer.passages import read_source


def test_a_time_holds_until_the_next_and_a_range_begins_anew() -> None:
    source = read_source(
        "[2026-03-01 09:05 UTC]\nOne. Two.\n\nThree.\n[2026-03-01 10:00 UTC - 2026-03-01 11:00 UTC]\n"
        "[2026-03-01 10:30 UTC] Four."
    )
    assert [(s.text, s.place, s.time, s.hour) for s in source.sentences] == [
        ("One.", 0, "2026-03-01 09:05 UTC", "2026-03-01 09"),
        ("Two.", 0, "2026-03-01 09:05 UTC", "2026-03-01 09"),
        ("Three.", 1, "2026-03-01 09:05 UTC", "2026-03-01 09"),
        ("Four.", 0, "2026-03-01 10:30 UTC", "2026-03-01 10"),
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


def test_the_last_lines_of_earlier_summaries_are_no_sentences() -> None:
    source = read_source("One.\nFiles: a.py (created)\nExpand for details about: logs, prices\nTwo.")
    assert [sentence.text for sentence in source.sentences] == ["One.", "Two."]
    assert source.footers == ("logs, prices",)
