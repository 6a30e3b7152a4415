import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from lcm.compaction.summarizer.t5 import windows
from tests.support import tiny_t5 as toy

PREFIX = "summarize: "
TOKENIZER = toy.tokenizer()
PREFIX_TOKENS, END_TOKENS = 2, 1  # summarize + :, </s>


def bodies(found: list[list[int]]) -> list[int]:
    """The tokens of the text itself."""
    return [token for ids in found for token in ids[PREFIX_TOKENS:-END_TOKENS]]


def tokens(text: str, tokenizer: Tokenizer = TOKENIZER) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


@given(seed=st.integers(0, 10_000), sentences=st.integers(0, 40), max_tokens=st.integers(32, 200))
def test_windows_are_the_text_in_whole_sentences_within_the_limit(seed, sentences, max_tokens):
    rng = random.Random(seed)
    text = " ".join(toy.plain_sentence(rng) for _ in range(sentences))
    found = windows(text, TOKENIZER, PREFIX, max_tokens)
    assert bodies(found) == tokens(text)
    assert all(len(ids) <= max_tokens for ids in found)
    assert all(ids[:PREFIX_TOKENS] == tokens(PREFIX) and ids[-1] == 1 for ids in found)
    assert all(TOKENIZER.decode(ids)[-1] in ".!?" for ids in found)
    # Two neighbours would not have fitted into one window, the frame of one counted once.
    frame = PREFIX_TOKENS + END_TOKENS
    assert all(len(one) + len(other) - frame > max_tokens for one, other in pairwise(found))


def test_sentence_longer_than_a_window_is_cut_between_words():
    for words in (35, 36, 37, 200):
        text = " ".join(["server"] * words)  # a word is a token
        found = windows(text, TOKENIZER, PREFIX, 32 + PREFIX_TOKENS + END_TOKENS)
        assert [len(ids) for ids in found] == [35] * (words // 32) + [3 + words % 32] * (words % 32 > 0)
        assert bodies(found) == tokens(text)


def test_sentences_after_one_that_was_cut_share_its_last_window():
    found = windows("server " * 40 + "server. nobody liked the game!", TOKENIZER, PREFIX, 35)
    last = "server " * 8 + "server. nobody liked the game!"  # the first window holds 32 of the 41
    assert [len(ids) for ids in found] == [35, PREFIX_TOKENS + len(tokens(last)) + END_TOKENS]
    assert bodies(found[1:]) == tokens(last)


@given(text=st.text(alphabet="server .!?\n\t。中", max_size=400))
def test_windows_of_any_text_are_within_the_limit(text):
    assert all(len(ids) <= 32 for ids in windows(text, TOKENIZER, PREFIX, 32))


def test_blank_text_has_no_window():
    assert [windows(text, TOKENIZER, PREFIX, 32) for text in ("", " ", "\n" * 500)] == [[], [], []]
