"""How well a conversation supports a candidate."""

from hypothesis import given
from hypothesis import strategies as st

from lcm.writing.admission.amac import support
from tests.lcm.writing.admission.tables import candidate

WORDS = st.lists(st.sampled_from("abcd"), max_size=8)


@given(words=WORDS, lines=st.lists(WORDS, max_size=4), more=WORDS)
def test_more_conversation_never_lowers_confidence(words: list[str], lines: list[list[str]], more: list[str]) -> None:
    said = [" ".join(line) for line in lines]
    one = candidate(" ".join(words))
    assert support(one, [*said, " ".join(more)]).confidence >= support(one, said).confidence
