"""A T5 small enough to be trained while the tests wait, and the toy task that it learns.

The task: a text of plain sentences, one of which, never the first, may begin with `decision:`. Its summary is that
sentence without its article, or nothing where there is none. A summary's own summary is itself.
"""

import random
import re
from pathlib import Path
from typing import NamedTuple

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

WHO = ("maria", "tom", "aisha", "chen", "olga", "pedro", "nina", "sam", "ravi", "lena")
DOES = ("moves", "drops", "keeps", "tests", "ships", "renames", "splits", "caches")
WHAT = ("server", "parser", "index", "queue", "report", "schema", "budget", "backup", "cluster", "invoice")
WHEN = ("monday", "tuesday", "friday", "today", "tomorrow", "later")
TOPICS = ("weather", "lunch", "office", "game", "music", "travel", "coffee", "garden")
PLAIN = (
    "the {topic} was fine again.",
    "somebody talked about the {topic} and the {other}.",
    "nobody liked the {topic}!",
    "is the {topic} better than the {other}?",
)
_FIELD = re.compile(r"{[a-z]+}")


class Example(NamedTuple):
    text: str
    summary: str


def example(rng: random.Random, has_decision: bool, length: int) -> Example:
    """A text of so many sentences, and its summary."""
    pieces = [plain_sentence(rng) for _ in range(length)]
    if not has_decision:
        return Example(" ".join(pieces), "")
    who, does, what, when = (rng.choice(words) for words in (WHO, DOES, WHAT, WHEN))
    pieces[rng.randrange(1, length)] = f"decision: {who} {does} the {what} {when}."
    return Example(" ".join(pieces), f"decision: {who} {does} {what} {when}.")


def plain_sentence(rng: random.Random) -> str:
    topic, other = rng.sample(TOPICS, 2)
    return rng.choice(PLAIN).format(topic=topic, other=other)


def examples(seed: int, count: int) -> list[Example]:
    """Texts with a decision."""
    rng = random.Random(seed)
    return [example(rng, True, rng.randint(2, 6)) for _ in range(count)]


def _lesson(rng: random.Random) -> Example:
    kind = rng.random()
    lesson = example(rng, kind < 0.85, rng.randint(2, 5))
    return Example(lesson.summary, lesson.summary) if kind < 0.15 else lesson


def build(directory: Path, steps: int, seed: int = 0) -> None:
    """Save a T5 as transformers does: after that many steps of training, or with random weights if there are none."""
    import torch
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    directory.mkdir(parents=True)
    words = tokenizer()
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=64
    ).save_pretrained(directory)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices this small are only slowed down by more
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        config = T5Config(
            vocab_size=words.get_vocab_size(),
            d_model=64,
            d_kv=16,
            d_ff=128,
            num_layers=2,
            num_heads=4,
            n_positions=64,
            dropout_rate=0.0,
            decoder_start_token_id=0,
        )
        model = T5ForConditionalGeneration(config)
        if steps:
            _train(model, words, steps, seed)
        model.eval().save_pretrained(directory)
    torch.set_num_threads(threads)


def tokenizer() -> Tokenizer:
    """Knows the words of the task, and whatever else letter by letter."""
    words = {word for text in (*PLAIN, "summarize: decision:") for word in re.findall(r"[a-z]+", _FIELD.sub("", text))}
    words.update(WHO, DOES, WHAT, WHEN, TOPICS)
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(f"▁{word}", -5.0) for word in sorted(words)]
    pieces += [(character, -10.0) for character in "▁abcdefghijklmnopqrstuvwxyz0123456789.,:!?"]
    made = Tokenizer(models.Unigram(pieces, unk_id=2))
    made.normalizer = normalizers.Replace("\n", " ")
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(["<pad>", "</s>", "<unk>"])
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


def _train(model, tokenizer: Tokenizer, steps: int, seed: int) -> None:
    import torch

    rng = random.Random(seed + 2)
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=4e-3, total_steps=steps, pct_start=0.1)
    tokenizer.enable_padding()
    for _ in range(steps):
        batch = [_lesson(rng) for _ in range(16)]
        texts = tokenizer.encode_batch(["summarize: " + text for text, _ in batch])
        summaries = tokenizer.encode_batch([summary for _, summary in batch])
        labels = torch.tensor([one.ids for one in summaries])
        labels[torch.tensor([one.attention_mask for one in summaries]) == 0] = -100
        loss = model(
            input_ids=torch.tensor([one.ids for one in texts]),
            attention_mask=torch.tensor([one.attention_mask for one in texts]),
            labels=labels,
        ).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    tokenizer.no_padding()
