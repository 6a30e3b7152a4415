"""Code, trees, tables and output, named instead of quoted."""

from lcm.compaction.summarizer.passages import language_of, named_block

NAMED = [
    ("def a():\n    pass\n\nclass B:\n    pass", "py", "Python, 5 lines: defines a, B"),
    ("export async function run() {\n}\nconst f = (x) => x;", "ts", "TypeScript, 3 lines: defines run, f"),
    ("fn main() {\n}", "", "code, 2 lines: defines main"),
    ("src\n├── a.py\n└── b.py", "", "tree, 3 lines: src, a.py, b.py"),
    ("| file | lines |\n|---|---|\n| a.py | 3 |", "", "table, 3 lines: file, lines"),
    ('{"name": "x", "price": 3}', "", "JSON, 1 line: keys name, price"),
    ("# Plan\ntext\n## Status\nmore", "md", "Markdown, 4 lines: Plan, Status"),
    ("diff --git a/x.py b/x.py\n@@ -1 +1 @@\n-a\n+b", "", "diff, 4 lines: x.py"),
    ("./src/a.py\n./src/b.py\n./c", "", "list, 3 lines: ./src/a.py, ./src/b.py, ./c"),
    ("one two three\nfour five", "", "output, 2 lines"),
    ("\n".join(f"def f{i}(): ..." for i in range(9)), "python", "Python, 9 lines: defines f0, f1, f2, f3, f4 …"),
]


def test_a_block_is_named_by_what_it_is() -> None:
    assert [named_block(text.split("\n"), language) for text, language, _ in NAMED] == [name for *_, name in NAMED]


def test_a_language_is_the_ending_of_a_file() -> None:
    assert [language_of(path) for path in ("a/b.PY", "notes", "x.unknown")] == ["py", "", ""]
