"""Sessions of onnxruntime, on the processors or on CUDA, with the tokenizer of their model.

onnxruntime and tokenizers are imported where a model is opened: who embeds without a model does not wait for them.
"""

import functools
import importlib.util
import itertools
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from lcm.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Encoding


class _Closing(Protocol):
    def close(self) -> None: ...


_Model = TypeVar("_Model", bound=_Closing)
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Device = Literal["auto", "cpu", "cuda"]
"""Where a model runs; auto = on CUDA where onnxruntime opens it there, else on the processors."""
Place = Literal["cpu", "cuda"]
Pooling = Literal["mean", "cls", "lasttoken", "weightedmean"]
SHARES: dict[Pooling, Callable[[npt.NDArray[np.bool_]], npt.NDArray[Any]]] = {
    "mean": lambda is_token: is_token / is_token.sum(axis=1, keepdims=True),
    "cls": lambda is_token: is_token & (is_token.cumsum(axis=1) == 1),
    "lasttoken": lambda is_token: is_token & (is_token[:, ::-1].cumsum(axis=1)[:, ::-1] == 1),
    "weightedmean": lambda is_token: (places := is_token * is_token.cumsum(axis=1)) / places.sum(axis=1, keepdims=True),
}
"""Of each pooling the share of each token vector in its text's; shape (texts, longest)."""

_log = logging.getLogger(__name__)
PROVIDERS: dict[Place, list[str]] = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
}
_TOKENS_A_BATCH = 30_000  # on CUDA; from 16,000 to 120,000 an H200 gives much the same
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WEIGHTS = "token_weights"
"""The input that makes a graph pool by itself: see `_on_cuda`."""
_TYPES: dict[str, type[np.number[Any]]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
_HIDDEN = "last_hidden_state"
_OUT_OF_MEMORY = re.compile("out of memory|failed to allocate|alloc_failed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Session:
    """A model that is open, on the processors or on CUDA.

    On the processors one text a call and one thread a call, so that a row depends on nothing but its text. Calls may
    run side by side: onnxruntime allows it, and it is as fast as one session a thread, in less memory. On CUDA
    `run_padded` reads batches of texts in fp16: what stands beside a text moves its last bits.
    """

    model: Any
    tokenizer: Any
    output: str
    width: int
    """Of the rows that the model itself gives."""
    dtypes: dict[str, type[np.number[Any]]]
    """The inputs that the graph has."""
    threads: ThreadPoolExecutor
    place: Place
    is_weighed: bool
    """Whether the graph pools its token vectors by weights: see `_on_cuda`."""
    is_told: list[bool] = field(default_factory=list)
    """Non-empty once low memory has been logged."""

    @classmethod
    def open(cls, model_path: Path, tokenizer_path: Path, threads: int | None, place: Place = "cpu") -> Self:
        """Open both files; on CUDA the graph is read as fp16, and pools its token vectors by itself.

        Raises:
            ModelError: if one is missing or is no embedding model, or CUDA cannot run it.
        """
        check_files(model_path, tokenizer_path)
        tokenizer = open_tokenizer(tokenizer_path)
        model = open_graph(model_path) if place == "cpu" else _on_cuda(model_path)
        inputs = {entry.name: _TYPES.get(entry.type) for entry in model.get_inputs()}
        dtypes = {name: dtype for name, dtype in inputs.items() if name in _INPUTS and dtype is not None}
        if strange := sorted(set(inputs) - set(dtypes) - {_WEIGHTS}):
            raise ModelError(f"{model_path} wants the inputs {strange}, which no text embedding model needs")
        output, width = _embedding_output(model, model_path)
        workers = ThreadPoolExecutor(threads or processors(), thread_name_prefix="embed")
        return cls(model, tokenizer, output, width, dtypes, workers, place, _WEIGHTS in inputs)

    def close(self) -> None:
        self.threads.shutdown()

    def encode_all(self, texts: Sequence[str], max_tokens: int) -> list["Encoding"]:
        """As `encode_at_most` each."""
        encodings = self.tokenizer.encode_batch([_LONE_SURROGATE.sub("\ufffd", text) for text in texts])
        return [
            encoding if len(encoding) <= max_tokens else self.encode_at_most(text, max_tokens)
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def lower_case(self) -> None:
        """Read every text in lower case."""
        from tokenizers import normalizers

        own = [self.tokenizer.normalizer] if self.tokenizer.normalizer else []
        self.tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *own])

    def map(self, work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """`work` on every item, on all threads; the results in the order of the items."""
        return list(self.threads.map(work, items))

    def encode(self, text: str, add_special_tokens: bool = True) -> "Encoding":
        """Offsets count characters of `text`: a lone surrogate, which no tokenizer takes, counts as one too."""
        return self.tokenizer.encode(_LONE_SURROGATE.sub("\ufffd", text), add_special_tokens=add_special_tokens)

    def encode_at_most(self, text: str, max_tokens: int) -> "Encoding":
        """As `encode`, cut to `max_tokens` with the special tokens kept."""
        encoding = self.encode(text)
        if len(encoding) <= max_tokens:
            return encoding
        encoding = self.encode(text, add_special_tokens=False)
        encoding.truncate(max_tokens - self.tokenizer.num_special_tokens_to_add(False))
        return self.tokenizer.post_process(encoding)

    def run(self, encoding: "Encoding") -> npt.NDArray[np.float32]:
        """The output for one text: shape (tokens, width), or (width,) where the graph pools by itself."""
        output: npt.NDArray[np.float32] = self.model.run([self.output], self.feed([encoding]))[0][0]
        return output

    def feed(self, batch: Sequence["Encoding"], pooling: Pooling | None = None) -> dict[str, npt.NDArray[Any]]:
        """The inputs of a call that reads these texts; with those of a graph that pools by itself."""
        lengths = [len(encoding) for encoding in batch]
        is_token = np.arange(max(lengths)) < np.array(lengths)[:, np.newaxis]
        feed: dict[str, npt.NDArray[Any]] = {name: is_token.astype(dtype) for name, dtype in self.dtypes.items()}
        for name, values in feed.items():
            if name == "position_ids":
                values *= np.arange(values.shape[1])
            elif name != "attention_mask":
                lists = (encoding.ids if name == "input_ids" else encoding.type_ids for encoding in batch)
                values[is_token] = np.fromiter(itertools.chain.from_iterable(lists), values.dtype, sum(lengths))
        if self.is_weighed and pooling is not None:
            feed[_WEIGHTS] = SHARES[pooling](is_token).astype(np.float32)
        return feed

    def run_padded(self, encodings: Sequence["Encoding"], pooling: Pooling | None = None) -> npt.NDArray[np.float32]:
        """The vectors of texts, in batches of like length and of about so many tokens.

        Args:
            encodings: the texts.
            pooling: of token vectors; a graph that has none pools by itself, with the padding of a batch, and so
                reads each text alone. None: of pairs, which a cross-encoder reads.
        Returns:
            shape (texts, width), zero for a text without tokens.
        Raises:
            ModelError: if CUDA has too little memory for a single text, or fails.
        """
        rows = np.zeros((len(encodings), self.width), np.float32)
        order = sorted((i for i, one in enumerate(encodings) if len(one)), key=lambda i: -len(encodings[i]))
        start = 0
        while start < len(order):
            most = _TOKENS_A_BATCH // len(encodings[order[start]]) if pooling is None or self.is_weighed else 1
            batch = order[start : start + max(1, most)]
            rows[batch] = self._run_batch(self.feed([encodings[i] for i in batch], pooling))
            start += len(batch)
        return rows

    def _run_batch(self, feed: dict[str, npt.NDArray[Any]]) -> npt.NDArray[np.float32]:
        """The vectors of a batch; by halves where memory is too small for all at once."""
        binding = self.model.io_binding()
        for name, values in feed.items():
            binding.bind_cpu_input(name, values)
        binding.bind_output(self.output, "cuda" if self.model.get_providers()[0].startswith("CUDA") else "cpu")
        try:
            self.model.run_with_iobinding(binding)
            vectors: npt.NDArray[np.float32] = binding.copy_outputs_to_cpu()[0]
        except Exception as err:  # onnxruntime's errors share no parent but Exception
            if not _OUT_OF_MEMORY.search(str(err)):
                raise ModelError(f"CUDA cannot run the model ({_one_line(err)}); set device to cpu") from err
            count, tokens = feed["input_ids"].shape
            if count == 1:
                raise ModelError(
                    f"the GPU has too little free memory for one text of {tokens} tokens: end what else runs there, "
                    "lower max_tokens, or set device to cpu"
                ) from err
            if not self.is_told:
                self.is_told.append(True)
                _log.warning("the GPU has too little free memory for %d texts at once: batches are halved", count)
            parts = (slice(count // 2), slice(count // 2, None))
            halves = ({name: values[part] for name, values in feed.items()} for part in parts)
            return np.concatenate([self._run_batch(half) for half in halves])
        return vectors


def place_of(device: Device) -> Place:
    """Where a model with this setting runs.

    Raises:
        ModelError: if that is CUDA, and no session opens there.
    """
    failure = None if device == "cpu" else cuda_failure()
    if device == "cuda" and failure:
        raise ModelError(f"device is cuda, but {failure}: pip install 'lcm-harness[gpu]', or set device to auto or cpu")
    return "cpu" if device == "cpu" or failure else "cuda"


@functools.cache
def cuda_failure() -> str | None:
    """Why no session opens on CUDA; None if one does. Where there is a choice, says once what `device=auto` takes.

    An onnxruntime that was not built for CUDA need not be imported to tell.
    """
    found = importlib.util.find_spec("onnxruntime")
    folders = [] if found is None else found.submodule_search_locations or []
    if not any(any(Path(folder).glob("capi/*onnxruntime_providers_cuda*")) for folder in folders):
        return "the onnxruntime that is installed was not built for CUDA"
    try:
        from onnx import TensorProto, helper

        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("a", "b")]
        graph = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "try", ends[:1], ends[1:])
        version = [helper.make_opsetid("", 17)]
        open_session(helper.make_model(graph, opset_imports=version, ir_version=8).SerializeToString(), "cuda")
    except (ImportError, ModelError) as err:
        _log.warning("device=auto takes the CPU: %s", err)
        return str(err)
    _log.info("models run on CUDA, in fp16")
    return None


def open_graph(path: Path, place: Place = "cpu") -> Any:
    """A graph, run by one thread a call.

    Raises:
        ModelError: if onnxruntime cannot open it.
    """
    try:
        return open_session(str(path), place)
    except ModelError as err:
        raise ModelError(f"{path} is no model that onnxruntime can open: {err}") from err


def open_session(graph: str | bytes, place: Place) -> Any:
    """A session of a file, or of a graph itself.

    Raises:
        ModelError: if onnxruntime cannot open it there, with the reason alone.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read by the import
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 4  # an error is raised, and told by who catches it
    if place == "cuda":
        onnxruntime.preload_dlls()  # of CUDA and cuDNN, which pip installed
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=PROVIDERS[place])
    except Exception as err:  # onnxruntime's errors share no parent but Exception
        raise ModelError(_one_line(err)) from err
    if PROVIDERS[place][0] not in session.get_providers():
        raise ModelError("onnxruntime cannot start CUDA here, whose libraries or GPU are missing or do not fit it")
    return session


def _on_cuda(path: Path) -> Any:
    """A session on CUDA of a graph as fp16, which gives one vector a text where the graph gives token vectors.

    The vector is the sum of the token vectors, each times its weight in the input `token_weights`.
    """
    import onnx
    from onnx import helper, numpy_helper
    from onnxruntime.transformers.float16 import convert_float_to_float16

    try:
        model = convert_float_to_float16(onnx.load(path), keep_io_types=True)
    except Exception as err:  # protobuf's and onnx's errors share no parent but Exception
        raise ModelError(f"{path} cannot be read as fp16 ({_one_line(err)}); set device to cpu") from err
    graph = model.graph
    outputs = {entry.name: entry for entry in graph.output if len(entry.type.tensor_type.shape.dim) == 3}
    hidden = outputs.get(_HIDDEN) or next(iter(outputs.values()), None)
    if hidden is not None:
        width = hidden.type.tensor_type.shape.dim[2].dim_value
        for name, shape in (("lcm_row", [0, 1, -1]), ("lcm_vector", [0, -1])):
            graph.initializer.append(numpy_helper.from_array(np.array(shape), name))
        graph.node.extend(
            [
                helper.make_node("Reshape", [_WEIGHTS, "lcm_row"], ["lcm_weights"]),
                helper.make_node("MatMul", ["lcm_weights", hidden.name], ["lcm_sum"]),
                helper.make_node("Reshape", ["lcm_sum", "lcm_vector"], ["lcm_pooled"]),
            ]
        )
        graph.input.append(helper.make_tensor_value_info(_WEIGHTS, onnx.TensorProto.FLOAT, ["batch", "length"]))
        del graph.output[:]
        graph.output.append(helper.make_tensor_value_info("lcm_pooled", onnx.TensorProto.FLOAT, ["batch", width]))
    return open_session(model.SerializeToString(), "cuda")


def open_tokenizer(path: Path) -> Any:
    """A tokenizer that neither cuts nor pads: some are published so, at other lengths than the model's own.

    Raises:
        ModelError: if the file is none.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as err:  # tokenizers raises bare Exception
        raise ModelError(f"{path} is no tokenizer: {_one_line(err)}") from err
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check_files(*paths: Path) -> None:
    """Refuse a model of which a file is missing."""
    for path in paths:
        if not path.is_file():
            raise ModelError(
                f"{path} does not exist: set directory (embedder.directory, further_embedder.directory, "
                "reranker.directory) to a model directory, which holds an .onnx file and its tokenizer.json"
            )


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(output: npt.NDArray[np.float32], pooling: Pooling) -> npt.NDArray[np.float64]:
    """The vector of a text whose token vectors these are; the output itself where it is a vector already."""
    vectors: npt.NDArray[np.float64] = output.astype(np.float64)
    if vectors.ndim == 1:
        return vectors
    if pooling == "mean":  # summed in another order than a product is: the rows of caches are these
        mean: npt.NDArray[np.float64] = vectors.mean(axis=0)
        return mean
    pooled: npt.NDArray[np.float64] = SHARES[pooling](np.ones((1, len(vectors)), np.bool_))[0] @ vectors
    return pooled


class Lazy(Generic[_Model]):
    """Opens a model when it is first used, once whichever thread comes first; travels unopened."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened: tuple[int, _Model] | None = None  # by which process

    def get(self, open_model: Callable[[], _Model]) -> _Model:
        with self._lock:
            # A forked child has inherited the model, but not its threads.
            if self._opened is None or self._opened[0] != os.getpid():
                self._opened = os.getpid(), open_model()
            return self._opened[1]

    def close(self) -> None:
        """Let go of the model; the next use opens it again."""
        with self._lock:
            if self._opened is not None:
                self._opened[1].close()
                self._opened = None

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()


def _embedding_output(model: Any, path: Path) -> tuple[str, int]:
    """The name and width of the token vectors, or of the text's own vector where there are none."""
    outputs = {entry.name: entry.shape for entry in model.get_outputs()}
    by_rank = [name for rank in (3, 2) for name, shape in outputs.items() if len(shape) == rank]
    name = _HIDDEN if _HIDDEN in by_rank else next(iter(by_rank), None)
    if name is None or not isinstance(outputs[name][-1], int):
        raise ModelError(f"{path} gives {sorted(outputs)}, none of them vectors of a known width")
    return name, outputs[name][-1]


def _one_line(err: Exception) -> str:
    return " ".join(str(err).split())
