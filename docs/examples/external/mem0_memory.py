"""mem0 (https://pypi.org/project/mem0ai) over the contract of docs/external.md, without a server and without a model.

What is said is kept as it was said (infer=False), in Qdrant on disk, with lcm's own MiniLM behind mem0's interface.
"""

import contextlib
import json
import os
import sys
import tempfile
import time

FOLDER = tempfile.mkdtemp()
os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": FOLDER}  # read when mem0 is imported

from mem0 import Memory, __version__  # noqa: E402
from mem0.embeddings.base import EmbeddingBase  # noqa: E402
from mem0.utils.factory import EmbedderFactory  # noqa: E402

from lcm.retrieval.embedder.onnx import MiniLM  # noqa: E402

MINILM = MiniLM()


class LcmEmbedding(EmbeddingBase):
    """lcm's MiniLM; mem0 embeds what it is told and what it is asked alike."""

    def embed(self, text, memory_action=None):
        return MINILM.embed([text], "document")[0].tolist()


# mem0 takes embedders by the names that it knows; no weights are fetched in this one's place.
EmbedderFactory.provider_to_class["huggingface"] = f"{__name__}.LcmEmbedding"


class Mem0:
    """Each message is a memory of the workspace that it was said in, with its id as metadata."""

    def reset(self, workspace):
        self.workspace = workspace
        self.memory = Memory.from_config(
            {
                "embedder": {"provider": "huggingface"},
                "llm": {"provider": "openai", "config": {"api_key": "none: never asked"}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "said",
                        "embedding_model_dims": MINILM.dim,
                        "path": tempfile.mkdtemp(dir=FOLDER),  # a folder of its own: empty
                        "on_disk": True,
                    },
                },
            }
        )
        return {"name": "mem0", "version": __version__}

    def add(self, messages):
        for one in messages:
            text = f"{one['author']}: {one['content']}" if one["author"] else one["content"]
            said = {"role": one["role"], "content": text}
            self.memory.add([said], user_id=self.workspace, infer=False, metadata={"message_id": one["id"]})

    def search(self, query, k, asked_at, scopes):
        found = self.memory.search(query, top_k=k, filters={"user_id": self.workspace})["results"]
        return {
            "results": [
                {"text": one["memory"], "score": one["score"], "source_ids": [one["metadata"]["message_id"]]}
                for one in found
            ]
        }


memory = Mem0()
for line in sys.stdin:
    call = json.loads(line)
    number, name, began = call.pop("id"), call.pop("call"), time.perf_counter()
    try:
        with contextlib.redirect_stdout(sys.stderr):  # what mem0 prints is no reply
            reply = getattr(memory, name)(**call) or {}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps({"id": number, **reply, "took_ms": 1000 * (time.perf_counter() - began)}), flush=True)
