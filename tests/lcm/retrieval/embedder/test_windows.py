"""Windows hold every character, go forward, and fit, whatever the tokenizer does."""

from hypothesis import example, given
from hypothesis import strategies as st

from lcm.retrieval.embedder.windows import cut


@example(steps=[0, 0, 1, 4, 2, 0], tail=1, word_starts=set(), budget=4, overlap=1, longest=5)
@given(
    steps=st.lists(st.integers(0, 6), min_size=1, max_size=60),
    tail=st.integers(1, 10),
    word_starts=st.sets(st.integers(0, 59)),
    budget=st.integers(4, 20),
    overlap=st.integers(0, 5),
    longest=st.integers(1, 30),
)
def test_windows_cover_in_order_and_fit(
    steps: list[int], tail: int, word_starts: set[int], budget: int, overlap: int, longest: int
) -> None:
    starts = [sum(steps[: i + 1]) for i in range(len(steps))]  # several tokens may share a character
    text = "".join(chr(0x4E00 + i) for i in range(starts[-1] + tail))  # every character once: places are known
    windows = cut(
        text,
        starts,
        [i in word_starts for i in range(len(starts))],
        budget,
        min(overlap, budget // 4),
        fits=lambda piece: len(piece) <= longest,
    )
    begins = [text.index(window) for window in windows]
    ends = [begin + len(window) for begin, window in zip(begins, windows, strict=True)]
    assert begins[0] == 0
    assert ends[-1] == len(text)
    assert all(begin <= end for begin, end in zip(begins[1:], ends, strict=False))  # no gap
    assert begins == sorted(set(begins))
    assert ends == sorted(ends)
    assert max(map(len, windows)) <= longest


def test_a_long_word_is_cut_only_where_it_must_be() -> None:
    text = "ab cd " + "x" * 12 + " ef"
    starts = [i for i, letter in enumerate(text) if letter != " "]
    first_of_word = [i == 0 or text[i - 1] == " " for i in starts]
    windows = cut(text, starts, first_of_word, 8, 0, fits=lambda piece: len(piece.replace(" ", "")) <= 8)
    assert windows == ["ab cd xxxx", "x" * 8 + " ", "ef"]
