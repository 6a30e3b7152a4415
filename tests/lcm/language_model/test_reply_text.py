from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.language_model.openai_compatible import is_incomplete, reply_text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"choices": [{"message": {"content": " yes\n"}}]}, "yes"),
        ({"choices": [{"message": {"content": "yes"}}, {"message": {"content": "no"}}]}, "yes"),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}, "a\nb"),
        ({"choices": [{"message": {"content": None, "reasoning": "hm"}}]}, ""),
        ({"choices": [{"text": "yes"}]}, "yes"),
        ({"content": [{"type": "text", "text": "yes"}]}, "yes"),
        ({"content": {"text": {"value": "yes", "annotations": []}}}, "yes"),
        ({"content": {"text": ["a", {"text": "b"}]}}, "a\nb"),
        ({"output_text": "yes"}, "yes"),
        ({"output": [{"type": "message", "content": [{"type": "output_text", "text": "yes"}]}]}, "yes"),
        ({"response": {"message": {"summary": {"text": "yes"}}}}, "yes"),
        ({"content": [{"text": "a"}], "output_text": "b"}, "a"),
        ({"content": [], "output_text": "b"}, "b"),
        ({"content": [{"text": "a "}, {"text": "b"}, {"text": " a"}]}, "a\nb"),
        ({"content": [{"text": "\ufeff \n"}]}, ""),
        ({"content": [{"type": "reasoning", "text": "hm", "summary": [{"text": "so"}]}, {"text": "yes"}]}, "yes"),
        ({"content": [{"type": "Redacted_Thinking", "text": "hm"}]}, ""),
        ({"error": {"message": "no"}}, ""),
        *((body, "") for body in ({}, [], None, "yes", 1, {"content": [1, None, "yes"]}, {"text": 5})),
    ],
)
def test_words_are_found_wherever_servers_put_them(body: Any, text: str) -> None:
    assert reply_text(body) == text


@pytest.mark.parametrize(
    ("body", "is_cut"),
    [
        ({"status": "incomplete"}, True),
        ({"incomplete_details": {"reason": "max_output_tokens"}}, True),
        ({"choices": [{"finish_reason": "length"}]}, True),
        ({"response": {"output": [{"status": "incomplete"}]}}, True),
        ({"choices": [{"finish_reason": "stop"}], "status": "completed", "incomplete_details": None}, False),
        ({"content": [{"text": "incomplete"}]}, False),
        *((body, False) for body in ({}, [], None, "incomplete")),
    ],
)
def test_a_response_that_was_cut_short_says_so_somewhere(body: Any, is_cut: bool) -> None:
    assert is_incomplete(body) is is_cut


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: (
        st.lists(children)
        | st.dictionaries(st.sampled_from(["text", "type", "content", "choices", "message", "status"]), children)
    ),
)


@given(JSON)
def test_every_response_has_a_trimmed_text(body: Any) -> None:
    text = reply_text(body)
    assert text == text.strip("\ufeff \n\t")
    assert is_incomplete(body) in (True, False)
