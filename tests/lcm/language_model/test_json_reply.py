"""The JSON object inside a reply."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.language_model.replies import object_in

JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner), max_leaves=5
)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('```json\n{"utility": 1}\n```', {"utility": 1}),
        ('Thinking {about it}: {"note": 1} so {"utility": 0.5}.', {"utility": 0.5}),
        ('{"result": {"utility": 2}}', {"utility": 2}),
        ('{"results": [{"utility": 2}]}', {"results": [{"utility": 2}]}),
        ('{"note": 1} {"other": 2}', {"note": 1}),
        ("no object at all", None),
        ('{"utility": 1', None),
        ("[1, 2]", None),
        ('{"a":' * 1_000, None),
    ],
)
def test_the_object_with_the_key_is_found(reply: str, found: object) -> None:
    assert object_in(reply[:5_000], "utility") == found


@given(value=st.dictionaries(st.text(), JSON), before=st.text(st.characters(exclude_characters="{}")))
def test_whatever_stands_before_an_object_does_not_hide_it(value: dict[str, object], before: str) -> None:
    assert object_in(before + json.dumps({**value, "key": 1}) + "!", "key") == {**value, "key": 1}
