import logging
import math
import pickle
import random
import sys
from collections import Counter

import pytest
from tokenizers import Tokenizer

from lcm.compaction.summarizer import t5 as t5_module
from lcm.compaction.summarizer.chain import Chain, Truncate
from lcm.compaction.summarizer.t5 import T5, windows
from lcm.errors import ModelError
from lcm.records.summary import SummaryRequest
from tests.support import tiny_t5 as toy

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torch")]

HELD_OUT = toy.examples(seed=1000, count=60)
LIMIT = 14  # tokens; a toy summary has 8


def word_salad(seed: int, count: int) -> list[str]:
    """Texts unlike any that the model has learnt from, of which it is anything but sure."""
    rng = random.Random(seed)
    words = [*toy.WHO, *toy.DOES, *toy.WHAT, *toy.WHEN, *toy.TOPICS, "decision:", "the", ".", "?"]
    return [" ".join(rng.choices(words, k=rng.randint(1, 30))) for _ in range(count)]


TEXTS = [example.text for example in HELD_OUT[:6]] + word_salad(seed=4, count=30)


def requests(texts, target_tokens=LIMIT):
    return [SummaryRequest(text, target_tokens) for text in texts]


def told(t5, texts, target_tokens=LIMIT):
    return t5.summarize(requests(texts, target_tokens), incidents=Counter())


def same(some, others):
    """Equal texts, confidences to 1e-6, and failures in the same places."""
    assert [result.text for result in some] == [result.text for result in others]
    assert [result.confidence for result in some] == pytest.approx([result.confidence for result in others], abs=1e-6)
    assert [str(result.failure) for result in some] == [str(result.failure) for result in others]


@pytest.fixture(scope="module")
def torch_model(built_t5):
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small are only slowed down by more
    model = T5ForConditionalGeneration.from_pretrained(built_t5.trained).eval()
    yield model, AutoTokenizer.from_pretrained(built_t5.trained)
    torch.set_num_threads(threads)


def generated_by_torch(torch_model, text, beams, length_penalty):
    """The summary, and the mean log-probability of its tokens without the end token; None where there is no token."""
    import torch

    model, tokenizer = torch_model
    ids = torch.tensor([tokenizer("summarize: " + text).input_ids])
    found = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=LIMIT,
        num_beams=beams,
        length_penalty=length_penalty,
        return_dict_in_generate=True,
        output_scores=True,
    )
    log_probabilities = model.compute_transition_scores(
        found.sequences, found.scores, found.beam_indices if beams > 1 else None, normalize_logits=beams == 1
    )[0]
    tokens = found.sequences[0][1:]  # what comes first is the token that decoding starts from
    kept = log_probabilities[: len(tokens)][tokens != tokenizer.eos_token_id]
    summary = tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return summary.strip(), kept.mean().item() if len(kept) else None


@pytest.mark.parametrize(("beams", "length_penalty"), [(1, 1.0), (3, -0.5)])
def test_agrees_with_torch_in_text_and_log_probability(tiny_t5, torch_model, beams, length_penalty):
    t5 = T5(str(tiny_t5.trained), beams=beams, length_penalty=length_penalty)
    unsure = 0
    for text, result in zip(TEXTS, told(t5, TEXTS), strict=True):
        summary, mean_log_probability = generated_by_torch(torch_model, text, beams, length_penalty)
        assert result.text == summary
        if summary:
            assert math.log(result.confidence) == pytest.approx(mean_log_probability, abs=1e-4)
            unsure += result.confidence < 0.9
        else:
            assert result.failure is not None
    assert unsure >= 10  # a model that is sure of all would agree with much that is wrong


def test_batches_hold_texts_of_one_limit_and_give_what_each_gives_alone(tiny_t5):
    asked = [SummaryRequest(text, 3 + place % 3) for place, text in enumerate(TEXTS)]
    together = T5(str(tiny_t5.trained)).summarize(asked, incidents=Counter())
    same(together, T5(str(tiny_t5.trained), batch_size=1, threads=1).summarize(asked, incidents=Counter()))
    assert {result.tokens for result in together} >= {3, 4, 5}


def test_without_the_extra_a_t5_says_what_to_install(tiny_t5, monkeypatch):
    monkeypatch.setitem(sys.modules, "optimum.onnxruntime", None)
    [result] = told(T5(str(tiny_t5.trained)), TEXTS[:1])
    assert "summarizer=t5 needs torch, transformers and optimum" in str(result.failure)
    assert "pip install 'lcm-harness[models]'" in str(result.failure)


def test_fact_of_the_last_window_of_a_long_text_is_kept(tiny_t5, caplog):
    rng = random.Random(8)
    plain = [toy.plain_sentence(rng) for _ in range(80)]
    text = " ".join([*plain, "decision: olga ships the parser friday.", toy.plain_sentence(rng)])
    incidents = Counter()
    with caplog.at_level(logging.WARNING):
        [result] = T5(str(tiny_t5.trained)).summarize(requests([text]), incidents=incidents)
    assert result.text == "decision: olga ships parser friday."
    left_out = incidents["t5 gave no words for a window: left out"]
    assert left_out >= 80 * 5 // 64  # a plain sentence has 5 tokens or more, a window at most 64
    assert f"{left_out} of {left_out + 1} windows" in caplog.text


def test_long_text_is_the_summary_of_its_windows_summaries(tiny_t5):
    t5 = T5(str(tiny_t5.trained))
    text = " ".join(example.text for example in HELD_OUT[:9])
    tokenizer = Tokenizer.from_file(str(tiny_t5.trained / "tokenizer.json"))
    found = [tokenizer.decode(ids).removeprefix("summarize: ") for ids in windows(text, tokenizer, t5.prefix, 64)]
    assert len(found) > 2
    parts = [result.text for result in told(t5, found, 64 // 4) if result.failure is None]
    same(told(t5, [text], 16), told(t5, ["\n".join(parts)], 16))


def test_int8_says_nearly_what_fp32_says(tiny_t5):
    texts = [example.text for example in HELD_OUT]
    exact, quantized = (told(T5(str(tiny_t5.trained), precision=p), texts) for p in ("fp32", "int8"))
    assert sum(one.text == other.text for one, other in zip(exact, quantized, strict=True)) >= 0.9 * len(HELD_OUT)
    assert {result.model for result in exact + quantized} == {"tiny-fp32", "tiny-int8"}
    assert exact[0].confidence != quantized[0].confidence
    assert exact[0].confidence == pytest.approx(quantized[0].confidence, abs=0.05)


def test_padding_alone_and_blank_text_are_failures(tiny_t5):
    long = " ".join(example.text for example in HELD_OUT)
    padded, of_windows = (told(T5(str(tiny_t5.untrained)), texts) for texts in (TEXTS[:5], [long]))
    blank = told(T5(str(tiny_t5.trained)), ["", " \n\t"])
    failures = {"gave no words": padded, "gave no words for any of": of_windows, "nothing to summarise": blank}
    for reason, results in failures.items():
        for result in results:
            assert reason in str(result.failure)
            assert (result.text, result.confidence) == ("", 0.0)


def test_target_and_cap_bound_the_tokens_of_a_summary(tiny_t5):
    text, summary = HELD_OUT[0]
    words = summary.rstrip(".").split()  # the colon and the full stop are tokens too

    def said(target_tokens, **settings):
        request = SummaryRequest(text, target_tokens, previous="decision: nina drops the index.", is_aggressive=True)
        return T5(str(tiny_t5.trained), **settings).summarize([request], incidents=Counter())[0].text

    assert said(4) == " ".join(words[:3])
    assert said(400, max_new_tokens=5) == " ".join(words[:4])
    assert said(400) == summary
    assert said(0) == words[0].rstrip(":")


def test_prefix_is_read_with_the_text(tiny_t5):
    model, text = str(tiny_t5.trained), HELD_OUT[0].text
    [plain], [bare] = told(T5(model), [text]), told(T5(model, prefix=""), [text])
    assert told(T5(model, prefix=""), ["summarize: " + text]) == [plain] != [bare]


def test_what_looks_like_a_mark_of_the_model_is_text(tiny_t5):
    marked = [f"{mark} {HELD_OUT[0].text}" for mark in ("</s>", "<pad>", "<unk>", "\ud83d")]
    assert all(result.text.startswith("decision: ") for result in told(T5(str(tiny_t5.trained)), marked))


def test_missing_model_is_found_at_the_first_use_and_a_chain_goes_on():
    t5 = T5(model="nobody/no-such-t5", precision="int8")
    for result in told(t5, ["a", "b"]):
        assert isinstance(result.failure, ModelError)
        assert "summarizer.model" in str(result.failure)
        assert "\n" not in str(result.failure)
        assert (result.text, result.confidence, result.method) == ("", 0.0, "t5")
        assert result.model == "nobody/no-such-t5-int8"
    [result] = told(Chain({"t5": t5, "truncate": Truncate()}, ["t5", "truncate"]), ["some words"])
    assert (result.method, result.failure) == ("truncate", None)


def test_failure_to_open_is_kept_until_closed(tiny_t5, tmp_path):
    folder, asked = tmp_path / "later", [HELD_OUT[0].text]
    t5 = T5(model=str(folder))
    assert told(t5, asked)[0].failure is not None
    folder.symlink_to(tiny_t5.trained)
    assert told(t5, asked)[0].failure is not None
    t5.close()
    assert told(t5, asked)[0].text == HELD_OUT[0].summary


def test_travels_without_its_model(tiny_t5):
    t5 = T5(str(tiny_t5.trained))
    same(told(t5, [HELD_OUT[0].text]), told(pickle.loads(pickle.dumps(t5)), [HELD_OUT[0].text]))


def test_a_torch_without_cuda_keeps_a_t5_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t5_module, "place_of", lambda device: "cuda")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert t5_module._place_of("auto") == "cpu"
    with pytest.raises(ModelError, match=r"^device is cuda, but the torch that is installed has no CUDA: [^\n]*$"):
        t5_module._place_of("cuda")
