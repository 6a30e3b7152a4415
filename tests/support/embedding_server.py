"""A server on this machine that embeds as OpenAI's API does, by an embedder of ours, and counts what it was asked."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from lcm.protocols.models import Embedder
from tests.lcm.retrieval.reranker.loopback import Answer, Asked

Fault = Callable[[Answer, int], Answer]
"""What becomes of the reply to a request, given its number from 0."""


@dataclass
class EmbeddingServer:
    """`answered` counts each text that a whole reply was made for."""

    embedder: Embedder
    fault: Fault = lambda answer, number: answer
    answered: Counter[str] = field(default_factory=Counter)
    asked: int = 0

    def __call__(self, request: Asked) -> Answer:
        number, self.asked = self.asked, self.asked + 1
        texts = request.body["input"]
        rows = self.embedder.embed(texts, "document")
        data = [{"object": "embedding", "index": i, "embedding": row.tolist()} for i, row in enumerate(rows)]
        usage = {"prompt_tokens": sum(len(text.split()) for text in texts)}
        answer = Answer({"object": "list", "data": data, "usage": usage})
        found = self.fault(answer, number)
        if found is answer:
            self.answered.update(texts)
        return found
