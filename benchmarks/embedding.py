"""Texts to vectors, against the bare onnxruntime session."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import corpus
from benchmarks.timing import Comparison, DisagreementError, Target, compared_rates, take_turns
from lcm.checks import check_range
from lcm.protocols.models import Vectors
from lcm.retrieval.embedder.onnx import Onnx
from lcm.retrieval.embedder.session import Session, processors

TARGET = Target("at least", 0.9)
_TOLERANCE = 1e-5  # of a value; ours pools in float64
_EPSILON = 1e-5  # of the layer norm

_Outputs = list[npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Embedding:
    """`windows` and `embed`, uncached, against `InferenceSession.run` fed the tokens of the very same windows.

    Both give one text a call to a session of one thread, as many calls side by side as there are processors. Ours
    cuts windows and tokens, pools and normalises besides.
    """

    embedder: Onnx
    texts: int

    def __post_init__(self) -> None:
        check_range(self, "texts", ge=1)
        if not isinstance(self.embedder, Onnx):
            raise ValueError(
                f"embedder must run an ONNX model for a bare session to run it too, got {self.embedder!r}; "
                "comparisons.embedding=null leaves the comparison out"
            )

    def run(self, repeats: int, seed: int) -> list[Comparison]:
        embedder, found = self.embedder, self.embedder.found()
        texts = [message.content for message in corpus.transcript(self.texts, seed).messages]
        pieces = [piece for windows in embedder.windows(texts) for piece in windows]
        session = Session.open(found.graph, found.tokenizer, embedder.threads)
        encodings = [session.encode_at_most(found.document_prefix + piece, found.max_tokens) for piece in pieces]
        feeds = [session.feed([encoding]) for encoding in encodings]

        def ours() -> Callable[[], Vectors]:
            return lambda: embedder.embed([p for windows in embedder.windows(texts) for p in windows], "document")

        with ThreadPoolExecutor(embedder.threads or processors()) as threads:

            def run(feed: dict[str, Any]) -> npt.NDArray[np.float32]:
                output: npt.NDArray[np.float32] = session.model.run([session.output], feed)[0][0]
                return output

            rounds = take_turns(
                ours,
                lambda: lambda: list(threads.map(run, feeds)),
                lambda mine, theirs: _check(mine, theirs, embedder),
                repeats,
            )
        session.threads.shutdown()
        tokens = [len(encoding.ids) for encoding in encodings]
        facts = {"texts": len(pieces), "mean_tokens": float(np.mean(tokens)), "max_tokens": max(tokens)}
        return [compared_rates("embedding", "texts/s", len(pieces), rounds, TARGET, facts)]


def _check(ours: Vectors, bare: _Outputs, onnx: Onnx) -> None:
    """Finish the bare outputs and compare them with our rows."""
    rows = [output if output.ndim == 1 else output[0] if onnx.pooling == "cls" else output.mean(0) for output in bare]
    theirs = np.stack(rows)
    if onnx.layer_norm:
        theirs = (theirs - theirs.mean(1, keepdims=True)) / np.sqrt(theirs.var(1, keepdims=True) + _EPSILON)
    theirs = theirs[:, : onnx.truncate_dim]
    theirs = theirs / np.linalg.norm(theirs, axis=1, keepdims=True)
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=0, atol=_TOLERANCE):
        raise DisagreementError("the embedder and the bare session gave different vectors")
