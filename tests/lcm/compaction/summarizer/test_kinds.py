"""What a sentence of a session is for."""

from lcm.compaction.summarizer.passages import kind_of

KINDS = [
    ("Never commit to main without asking me.", "user", "rule"),
    ("Never commit to main without asking me.", "Ann (user)", "rule"),
    ("You must always run the tests before a commit.", "human", "rule"),
    ("Every commit needs a changelog line.", "user", "rule"),
    ("From now on answer in German.", "user", "rule"),
    ("Can you look at the parser?", "user", "instruction"),
    ("wow", "user", "filler"),
    ("今日は雨です。", "user", "instruction"),
    ("Never commit to main without asking me.", "assistant", "plain"),
    ("Never commit to main without asking me.", "Bo", "plain"),
    ("The root cause is a missing index.", "assistant", "decision"),
    ("The tests still need a fixture.", "assistant", "open question"),
    ("Let me look at the parser.", "assistant", "filler"),
    ("Here is what changed:", "assistant", "filler"),
    ("Perfect!", "assistant", "filler"),
    ("The kettle holds two litres.", "assistant", "plain"),
    ("wrote a.py: 30 bytes", "tool", "change"),
    ("ran `git commit -am x`: [main 1234567] x", "tool", "change"),
    ("ran `npm test`: exit code 1; 3 failed", "tool", "error"),
    ("read a.py: Python, 30 lines", "tool", "look"),
    ("ran `npm test`: 30 passed", "tool", "plain"),
]


def test_a_sentence_is_told_by_its_words_and_its_speaker() -> None:
    wrong = [(text, speaker, kind_of(text, speaker)) for text, speaker, kind in KINDS if kind_of(text, speaker) != kind]
    assert wrong == []
