"""A local model that reads query and document together."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from lcm.checks import check_choice, check_range
from lcm.encoding import well_formed
from lcm.errors import ModelError
from lcm.protocols.retrieval import Batch
from lcm.retrieval.embedder.session import Lazy, Session
from lcm.retrieval.lookup import texts_of
from lcm.retrieval.ranking.ordering import best_first
from lcm.retrieval.reranker.blending import Blend, beyond, check_window, first

_FEWEST_TOKENS = 16  # special tokens, and something of either text


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """(query, document) → tokens → model → one logit → activation → blend. Puts the score into reranker_score.

    A pair too long for the model loses tokens of its longer text, from the end. One pair a call and one thread a call,
    as the embedders do it, so that a score depends on nothing but its pair: pairs padded to a common length, or
    quantized by a common scale, would move each other's last bits. Calls run side by side on all threads. Nothing is
    opened before the first use.
    """

    blend: Blend
    directory: str | None = None
    """Holds the .onnx file of a sequence classifier with one label, and its tokenizer.json."""
    file: str = "model.onnx"
    window: int | None = 40
    """How many candidates of a query are kept and read; None = all."""
    max_tokens: int = 512
    """The model's window, special tokens included."""
    activation: Literal["sigmoid", "none"] = "sigmoid"
    """Of the logit; none for a graph that ends in a score."""
    threads: int | None = None
    """None = one a processor. Scores do not depend on it."""
    _session: Lazy[Session] = field(default_factory=Lazy, init=False, repr=False, compare=False)
    reads_unit_scores = True

    def __post_init__(self) -> None:
        check_window(self.window)
        if not self.file.endswith(".onnx"):
            raise ValueError(f"file must end in .onnx, got {self.file!r}")
        check_range(self, "max_tokens", ge=_FEWEST_TOKENS)
        check_choice(self, activation=("sigmoid", "none"))
        check_range(self, "threads", ge=1, or_null=True)

    def reasons(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        """Of what is dropped, how many are kept."""
        return beyond(frame, self.window, batch)

    def __call__(self, frame: pl.DataFrame, batch: Batch) -> pl.DataFrame:
        kept = first(frame, self.window, batch)
        asked: dict[str, str] = dict(batch.queries.select("query_id", "text").iter_rows())
        pairs = zip(
            (asked[one] for one in kept["query_id"]), texts_of(batch, kept["document_id"]).to_list(), strict=True
        )
        scores = self.scores([(query, text or "") for query, text in pairs])
        return best_first(self.blend.apply(kept.with_columns(reranker_score=pl.Series(scores, dtype=pl.Float64))))

    def scores(self, pairs: list[tuple[str, str]]) -> list[float]:
        """How well each document answers its query.

        Raises:
            ModelError: if there is no model, or it gives no number.
        """
        if not pairs:
            return []
        session = self._session.get(self._open_session)
        return session.map(lambda pair: self._score(session, *pair), pairs)

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        self._session.close()

    def _open_session(self) -> Session:
        if self.directory is None:
            raise ModelError(
                "reranker=cross_encoder has no model: set reranker.directory to a folder that holds a cross-encoder as "
                ".onnx file with its tokenizer.json"
            )
        path = Path(self.directory) / self.file
        session = Session.open(path, Path(self.directory) / "tokenizer.json", self.threads)
        output = next(entry for entry in session.model.get_outputs() if entry.name == session.output)
        if session.width != 1 or len(output.shape) != 2:
            raise ModelError(
                f"{path} gives {session.output!r} of shape {output.shape}; a cross-encoder gives one logit"
            )
        session.tokenizer.enable_truncation(self.max_tokens, strategy="longest_first")
        return session

    def _score(self, session: Session, query: str, document: str) -> float:
        encoding = session.tokenizer.encode(well_formed(query), well_formed(document))
        logit = float(session.run(encoding)[0])
        if not math.isfinite(logit):
            raise ModelError(f"{self.directory}/{self.file} gives {logit} for {document[:60]!r}")
        # The logistic function, in a form that cannot overflow.
        return 0.5 + 0.5 * math.tanh(logit / 2) if self.activation == "sigmoid" else logit
