import pytest

from lcm.compaction.facts.done import NO_FILES, file_operations, files_line
from lcm.token_estimator import Utf16Units


def told(text: str) -> list[str]:
    return [str(operation) for operation in file_operations(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I created src/x.py and `src/y.py`.", ["src/x.py (created)", "src/y.py (created)"]),
        ("Removed the file foo/bar.txt, then updated baz.txt.", ["foo/bar.txt (deleted)", "baz.txt (modified)"]),
        ("The file /x/y.py has been updated.", ["/x/y.py (modified)"]),
        ("I fixed the endless loop in run.py", ["run.py (modified)"]),
        ("moved a.py to lib/b.py", ["lib/b.py (renamed from a.py)"]),
        ("Successfully wrote 12 bytes to src/k.ts", ["src/k.ts (created)"]),
        ('write {"path": "/a/b.md", "content": "x"}', ["/a/b.md (created)"]),
        ('{"name":"edit","arguments":{"file_path":"q/w.ts"}}', ["q/w.ts (modified)"]),
        ('[call of edit: {"path":"q/w.ts"}]', ["q/w.ts (modified)"]),
        ("Edit: src/app.ts", ["src/app.ts (modified)"]),
        ("$ rm -rf old.txt && mv foo.c bar.c", ["old.txt (deleted)", "bar.c (renamed from foo.c)"]),
        ("cat > /tmp/a.sh <<EOF", ["/tmp/a.sh (created)"]),
        ("*** Update File: a/b.go\n*** Delete File: p.go", ["a/b.go (modified)", "p.go (deleted)"]),
        ('{"patch":"*** Begin Patch\\n*** Add File: i/x.go\\n*** End Patch"}', ["i/x.go (created)"]),
        ("*** Update File: a.go\n*** Move to: b.go", ["b.go (renamed from a.go)"]),
        (" create mode 100644 x/y.z", ["x/y.z (created)"]),
        ("rename from a.txt\nrename to b.txt", ["b.txt (renamed from a.txt)"]),
    ],
)
def test_files_are_found_in_prose_calls_commands_and_patches(text: str, expected: list[str]) -> None:
    assert told(text) == expected


def test_what_was_not_done_is_no_operation() -> None:
    said = [
        *("I have not modified main.py", "Let me create main.py", "read main.py", "created e.g. a habit"),
        *("They updated https://a.example/b.html", "The touch screen was changed", "Files: none", ""),
    ]
    assert [text for text in said if told(text)] == []


def test_the_last_status_holds() -> None:
    assert told("created a.py\nedited a.py") == ["a.py (modified)"]
    assert told("created a.py\nwrote a.py") == ["a.py (modified)"]
    assert told("edited a.py\nrm a.py") == ["a.py (deleted)"]
    assert told("rm a.py\ncreated a.py") == ["a.py (created)"]
    assert told("moved a.py to b.py\nmoved b.py to c.py") == ["c.py (renamed from a.py)"]


def test_an_absolute_path_is_the_relative_one_that_it_ends_in() -> None:
    said = "created /home/me/p/src/a.py\nedited src/a.py\nedited /home/me/a.py"
    assert told(said) == ["src/a.py (modified)", "/home/me/a.py (modified)"]


def test_the_lines_of_earlier_summaries_are_merged_in_order() -> None:
    first = files_line(file_operations("created a.py\ncreated b.py"), 100, Utf16Units())
    assert first == "Files: a.py (created), b.py (created)"
    second = files_line(file_operations("rm a.py\nmoved b.py to c.py"), 100, Utf16Units())
    merged = told(f"[x]\nDone.\n{first}\n\n[y]\nMore.\n{NO_FILES}\n{second}")
    assert merged == ["a.py (deleted)", "c.py (renamed from b.py)"]
    assert told("Files: `src/a.py` created; src/b.py - deleted") == ["src/a.py (created)", "src/b.py (deleted)"]


def test_a_line_too_long_names_the_latest_and_counts_the_rest() -> None:
    operations = file_operations("created a.py\ncreated b.py\ncreated c.py")
    assert files_line([], 0, Utf16Units()) == "Files: none"
    assert files_line(operations, 9, Utf16Units()) == "Files: c.py (created), 2 more"  # 29 / 4 = 7.25 tokens
    assert files_line(operations, 0, Utf16Units()) == "Files: 3 more"
    assert told("Files: c.py (created), 2 more") == ["c.py (created)"]


def test_a_long_line_without_spaces_costs_its_length_alone() -> None:
    assert told("created " + "QUJD/+" * 20_000 + "=\ncreated a.py")[-1] == "a.py (created)"
