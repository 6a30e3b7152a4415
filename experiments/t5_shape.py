"""A T5 in the shape of t5-small, its weights drawn at random: it says nothing, and is as fast as a real one.

    .venv/bin/python experiments/t5_shape.py FOLDER
    python -m benchmarks.t5 FOLDER count=32 max_new_tokens=48

Its tokenizer is learnt from the bundled conversations, so that a text has about as many tokens as a real one's.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

from benchmarks.t5 import sample_texts

MARKS = ("<pad>", "</s>", "<unk>")
WORDS = 4000
WINDOW_TOKENS = 512


def main(folder: Path) -> None:
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer(),
        **dict(zip(("pad_token", "eos_token", "unk_token"), MARKS, strict=True)),
        model_max_length=WINDOW_TOKENS,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = T5Config(n_positions=WINDOW_TOKENS, decoder_start_token_id=0)  # else the defaults: they are t5-small's
    model = T5ForConditionalGeneration(config)
    model.save_pretrained(folder)
    print(f"{sum(one.numel() for one in model.parameters()):,} parameters drawn at random in {folder}")


def tokenizer() -> Tokenizer:
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=WORDS, special_tokens=list(MARKS), unk_token=MARKS[2])
    made.train_from_iterator(sample_texts(1000), trainer)
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return made


if __name__ == "__main__":
    main(Path(sys.argv[1]))
