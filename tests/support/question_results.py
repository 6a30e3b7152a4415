"""What a kind of questions makes of the sample: English, Japanese and Chinese, tool calls, days that pass."""

import json

from omegaconf import DictConfig

from eval.dataset.sample import Sample
from eval.questions.making import make_questions
from pipelines.config import building
from tests.lcm.retrieval.reranker.loopback import Answer, Asked
from tests.support.local_server import said, served


def made(config: DictConfig) -> object:
    """The questions, and what became of each kind."""
    with served(_in_other_words) as asked:
        found = make_questions(Sample().load().transcripts, building.build(config, "kinds"))
        return found, sorted(map(repr, asked))


def _in_other_words(request: Asked) -> Answer:
    """At first in the words that it is to leave out."""
    prompt = request.body["messages"][-1]["content"]
    forbidden = prompt.rpartition("forms of them: ")[2].split(", ")[0]
    return said(json.dumps({"question": "Whereabouts?" if "does not do" in prompt else f"{forbidden}?"}))
