import json
from collections import Counter
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lcm.errors import StoreError
from lcm.memory.session import Exploration, live_message
from lcm.records.conversation import LargeFile, Message
from lcm.store.store import Store
from lcm.token_estimator import Utf16Units
from lcm.transcript.large_files import compacted, file_ids_in, file_text, intercepted
from lcm.transcript.parts import rebuild
from tests.lcm.memory.session.session_files import NOW

TOKENS = Utf16Units()
EXPLORE = partial(Exploration().explore, incidents=Counter())


def heard(native: dict[str, object], threshold: int = 10, **choices: bool) -> Message:
    return intercepted(live_message(native, "s", NOW, "m"), threshold, TOKENS, EXPLORE, **choices)


def tool_result(text: str) -> dict[str, object]:
    return {"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [{"type": "text", "text": text}]}


BODIES = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=120)


@given(st.lists(st.tuples(BODIES, BODIES), max_size=4), st.integers(0, 40))
def test_every_large_body_is_found_again_and_nothing_recorded_is_lost(
    files: list[tuple[str, str]], threshold: int
) -> None:
    text = "".join(f'{before}<file name="n.txt">{body}</file>' for before, body in files)
    message = heard({"role": "user", "content": text}, threshold)
    large = [body for _, body in files if TOKENS.count([body])[0] >= max(1, threshold)]
    assert [file_text(message, file) for file in message.files] == large
    assert rebuild(message) == {"role": "user", "content": text}
    assert file_ids_in(message.content) == [file.file_id for file in message.files]


def test_a_text_of_exactly_the_threshold_is_large_and_stays_taken_out() -> None:
    assert heard(tool_result("x" * 40), 10).files  # 40 / 4 = 10 tokens
    assert not heard(tool_result("x" * 36), 10).files  # 36 / 4 = 9
    once = heard(tool_result("x" * 400))
    assert intercepted(once, 10, TOKENS, EXPLORE) == once == heard(tool_result("x" * 400))


WORDS = "word " * 50
RESULT = {"type": "tool_result", "tool_use_id": "c", "content": WORDS, "is_error": True}


@pytest.mark.parametrize(
    ("native", "others"),
    [
        ({"role": "tool", "tool_call_id": "c", "content": WORDS}, []),
        ({"role": "user", "content": [RESULT, {"type": "text", "text": "and?"}]}, [{"type": "text", "text": "and?"}]),
    ],
)
def test_other_results_are_taken_out_by_choice_alone_and_keep_their_neighbours(native, others):
    assert not heard(native).files
    taken = heard(native, every_tool_result=True)
    (file,) = taken.files
    assert file_text(taken, file) == WORDS
    block, *neighbours = rebuild(compacted(taken))["content"]
    assert neighbours == others
    assert (block["tool_use_id"], block["externalizedFileId"], "is_error" in block) == ("c", file.file_id, bool(others))
    assert file.file_id in (block["output"] if others else json.dumps(block))


def test_an_image_beside_a_large_file_stays() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    words = {"type": "text", "text": f"<file>{'x' * 60}</file>"}
    taken = heard({"role": "user", "content": [words, image]})
    assert rebuild(compacted(taken))["content"][1] == image


def test_the_store_gives_a_large_file_back_in_full() -> None:
    body = json.dumps(list(range(100)))
    message = heard({"role": "user", "content": f'<file name="n.json">{body}</file>'})
    with Store() as store:
        store.append("c", [message], TOKENS)
        (stored,) = store.messages("c")
    assert stored == message
    assert file_text(stored, stored.files[0]) == body
    assert "Top-level type: array" in stored.content


def test_a_file_that_the_message_does_not_hold_is_refused() -> None:
    with pytest.raises(StoreError, match="does not hold the file 'file_0'"):
        file_text(heard(tool_result("x" * 400)), LargeFile("file_0", 3, 0, None, None, 1, ""))
