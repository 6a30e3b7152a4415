"""Models of sentence-transformers as they are published: read, exported, checked against torch, refused in one line."""

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lcm.errors import ModelError
from lcm.retrieval.embedder import export as export_module
from lcm.retrieval.embedder import session as session_module
from lcm.retrieval.embedder.onnx import Onnx
from tests.lcm.retrieval.embedder.test_onnx import by_hand, unit
from tests.support.models import BuildModel, describe

HUB: dict[str, Any] = dict.fromkeys(("file", "max_tokens", "query_prefix", "document_prefix", "pooling"))
"""As `embedder=hub` sets them: all is as the model's files say."""


def write(folder: Path, name: str, content: object) -> None:
    (folder / name).write_text(json.dumps(content))


@pytest.fixture
def published(build_model: BuildModel) -> Path:
    """A model with its files."""
    folder = build_model()
    describe(folder, pooling="mean_tokens", max_seq_length=12)
    return folder


def test_pooling_prefixes_limit_width_and_case_are_as_the_files_say(build_model: BuildModel) -> None:
    folder = build_model()
    describe(folder, pooling="cls_token", max_seq_length=12, do_lower_case=True)
    prompts = {"query": "ab: ", "passage": "cd: "}
    write(folder, "config_sentence_transformers.json", {"prompts": prompts, "truncate_dim": 8})
    write(
        folder, "modules.json", [{"type": f"sentence_transformers.models.{one}"} for one in ("Transformer", "Pooling")]
    )
    embedder = Onnx(str(folder), **HUB, overlap_tokens=2)
    assert embedder.dim == 8
    for kind, prefix in (("query", "ab: "), ("document", "cd: ")):
        row = embedder.embed(["HI"], kind)[0]  # type: ignore[arg-type]
        np.testing.assert_allclose(row, unit(by_hand(folder, f"{prefix}hi")[0][:8]), atol=1e-6)
    assert max(len(window) for window in embedder.windows(["abcdefghijklmnop"])[0]) == 12 - 3 - 2
    explicit = Onnx(str(folder), **HUB | {"query_prefix": "", "pooling": "mean"}, overlap_tokens=2)
    row = explicit.embed(["hi"], "query")[0]
    np.testing.assert_allclose(row, unit(by_hand(folder, "hi").mean(axis=0)[:8]), atol=1e-6)


@pytest.mark.parametrize(
    ("told", "pooled"),
    [
        ({"pooling_mode_lasttoken": True}, lambda rows: rows[-1]),
        ({"pooling_mode": "weightedmean"}, lambda rows: np.arange(1, len(rows) + 1) @ rows),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, lambda rows: rows.mean(axis=0)),
        ({"pooling_mode": ["cls"]}, lambda rows: rows[0]),
    ],
)
def test_every_pooling_is_what_it_is_called(published: Path, told: dict[str, Any], pooled: Any) -> None:
    write(published, "1_Pooling/config.json", told)
    row = Onnx(str(published), **HUB).embed(["abc"], "document")[0]
    np.testing.assert_allclose(row, unit(pooled(by_hand(published, "abc"))), atol=1e-6)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown pooling": (
        {"1_Pooling/config.json": {"pooling_mode_max_tokens": True}},
        r"pools by max_tokens: set embedder\.pooling to one of mean, cls, lasttoken, weightedmean",
    ),
    "two poolings": (
        {"1_Pooling/config.json": {"pooling_mode": ["cls", "mean"]}},
        r"pools by cls and mean: set embedder",
    ),
    "no pooling": ({"1_Pooling/config.json": {}}, r"names no pooling: set embedder\.pooling"),
    "prompts left out": (
        {
            "1_Pooling/config.json": {"pooling_mode": "mean", "include_prompt": False},
            "config_sentence_transformers.json": {"prompts": {"query": "q: "}},
        },
        "leaves out prompts",
    ),
    "no encoder": (
        {"config.json": {"architectures": ["GPT2LMHeadModel"]}},
        "holds GPT2LMHeadModel, which is no encoder",
    ),
    "encoder and decoder": (
        {"config.json": {"is_encoder_decoder": True}},
        "which is no encoder: name an embedding model",
    ),
    "another step": (
        {"modules.json": [{"type": "x.Transformer"}, {"type": "x.Dense"}]},
        "ends in Dense, says its modules",
    ),
    "no limit": ({"sentence_bert_config.json": {}}, r"how many tokens the model reads: set embedder\.max_tokens"),
    "a limit above the positions": (
        {"config.json": {"max_position_embeddings": 8}},
        "max_tokens is 12, but .* reads 8",
    ),
    "no JSON": ({"modules.json": {}}, "holds no JSON list"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_model_that_is_none_of_ours_is_refused_in_one_line(published: Path, case: str) -> None:
    files, said = REFUSED[case]
    for name, content in files.items():
        write(published, name, content)
    with pytest.raises(ModelError, match=rf"^[^\n]*{said}[^\n]*$"):
        Onnx(str(published), **HUB).embed(["a"], "query")


def test_folders_without_tokenizer_or_with_two_graphs_and_other_widths_are_refused(published: Path) -> None:
    write(published, "config.json", {"matryoshka_dimensions": [4, 8]})
    with pytest.raises(ModelError, match=r"^truncate_dim is 5, but .* was trained for the widths 4, 8$"):
        Onnx(str(published), **HUB, truncate_dim=5).embed(["a"], "query")
    (published / "config.json").unlink()
    with pytest.raises(ModelError, match=r"^truncate_dim is 17, but .* gives 16 values$"):
        Onnx(str(published), **HUB, truncate_dim=17).embed(["a"], "query")
    shutil.copy(published / "model.onnx", published / "second.onnx")
    (published / "model.onnx").rename(published / "first.onnx")
    with pytest.raises(
        ModelError, match=r"holds 2 \.onnx files \(first\.onnx, second\.onnx\): set file to one of them$"
    ):
        Onnx(str(published), **HUB).embed(["a"], "query")
    (published / "second.onnx").unlink()
    (published / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"^[^\n]*tokenizer\.json does not exist: [^\n]*$"):
        Onnx(str(published), **HUB).embed(["a"], "query")


def test_a_model_that_is_not_here_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    embedder = Onnx(model="someone/nowhere", **HUB)  # constructing opens nothing
    with pytest.raises(
        ModelError, match=r"^'someone/nowhere' is no folder, not in [^\n]* name a folder that holds it[^\n]*$"
    ):
        embedder.embed(["a"], "query")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match=r"^'someone/nowhere' is no folder[^\n]*huggingface_hub[^\n]*$"):
        embedder.embed(["a"], "query")


def test_what_is_fetched_is_weights_or_a_graph_and_no_code(monkeypatch: pytest.MonkeyPatch, published: Path) -> None:
    import huggingface_hub

    asked: list[list[str]] = []

    def fetch(model: str, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return str(published)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: None)
    of_hub, of_folder = Onnx(model="someone/published", **HUB), Onnx(str(published), **HUB)
    assert of_hub.name == of_folder.name
    assert asked == [["*.json", "vocab.txt", "model*.safetensors"], ["onnx/model.onnx*"]]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_weights_are_exported_once_and_give_what_sentence_transformers_gives(bert: Path, precision: Any) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    texts = ["abc def", "the cat sat on the mat", "x"]
    embedder = Onnx(model=str(bert), **HUB, precision=precision)
    rows = embedder.embed(texts, "document")
    with torch.no_grad():
        theirs = SentenceTransformer(str(bert), device="cpu").encode(texts, normalize_embeddings=True)
    assert (rows * theirs).sum(axis=1).min() > (0.99999 if precision == "fp32" else 0.9)
    assert embedder.found().graph.parent.parent == export_module.models_dir()


def test_an_export_that_is_far_from_torch_is_refused(
    bert: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(export_module, "lowest_cosine", lambda *_: 0.5)
    (tmp_path / "made").mkdir()
    with pytest.raises(SystemExit, match=r"^its fp32 graph gives vectors of a cosine down to 0\.5000 to torch's"):
        export_module._convert(bert, tmp_path / "made", "fp32")


class OutOfMemory:
    """A binding of a GPU with room for so many texts."""

    def __init__(self, model: Any, most: int) -> None:
        self._model, self._most = model, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def io_binding(self) -> Any:
        binding, bind = self._model.io_binding(), self

        class Binding:
            def bind_cpu_input(self, name: str, values: np.ndarray) -> None:
                bind.texts = len(values)
                binding.bind_cpu_input(name, values)

            def __getattr__(self, name: str) -> Any:
                return getattr(binding, name)

        self.binding = binding
        return Binding()

    def run_with_iobinding(self, _: Any) -> None:
        if self.texts > self._most:
            raise RuntimeError("BFCArena::AllocateRawInternal Failed to allocate memory for requested buffer")
        self._model.run_with_iobinding(self.binding)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken", "weightedmean"])
def test_rows_on_cuda_are_those_of_the_cpu_in_batches_and_have_another_name(
    pooling: Any, build_model: BuildModel, cuda: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_TOKENS_A_BATCH", 30)
    folder = str(build_model(positions=True))
    texts = ["abc", "the goats escaped the yard", "", "x", "abc def ghi", "y " * 40]
    settings = {"pooling": pooling, "layer_norm": True, "truncate_dim": 12, "max_tokens": 32, "overlap_tokens": 0}
    on_cuda, on_cpu = (Onnx(folder, device=device, **settings) for device in ("cuda", "cpu"))  # type: ignore[arg-type]
    rows, theirs = (one.embed(texts, "document") for one in (on_cuda, on_cpu))
    assert rows.dtype == np.float32
    assert (rows * theirs).sum(axis=1).min() > 1 - 1e-3
    assert on_cuda.name != on_cpu.name
    assert on_cuda.name.endswith("-cuda-fp16")
    assert Onnx(folder, **settings).name == on_cuda.name  # auto takes CUDA
    assert on_cuda.embed([], "document").shape == (0, 12)


def test_a_full_gpu_reads_half_as_many_and_a_text_too_many_is_told(
    build_model: BuildModel, cuda: None, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Onnx(str(build_model()), device="cuda")
    texts = [f"{'a' * length}" for length in range(1, 9)]
    rows = embedder.embed(texts, "query")
    session = embedder._open()
    for most, reads in ((3, True), (0, False)):
        object.__setattr__(session, "model", OutOfMemory(session.model, most))
        if reads:
            np.testing.assert_allclose(embedder.embed(texts, "query"), rows, atol=1e-3)
            assert "too little free memory for 8 texts at once: batches are halved" in caplog.text
        else:
            with pytest.raises(
                ModelError, match=r"^the GPU has too little free memory for one text of 10 tokens: [^\n]*$"
            ):
                embedder.embed(texts, "query")


def test_a_graph_that_pools_by_itself_does_so_on_cuda(build_model: BuildModel, cuda: None) -> None:
    plain, pooled = build_model(), build_model("pooled", pooled=True)
    rows = [Onnx(str(one), device="cuda").embed(["abc def", "x"], "query") for one in (plain, pooled)]
    assert ((rows[0] * rows[1]).sum(axis=1) > 0.999).all()  # its mean would count padding: it reads each text alone


def test_without_a_gpu_cuda_is_refused_naming_the_extra_and_auto_is_the_cpu(build_model: BuildModel) -> None:
    folder = str(build_model())
    with pytest.raises(ModelError, match=r"^device is cuda, but [^\n]*pip install 'lcm-harness\[gpu\]'[^\n]*$"):
        Onnx(folder, device="cuda").embed(["a"], "query")
    assert Onnx(folder).name == Onnx(folder, device="cpu").name


def test_an_onnxruntime_for_cuda_that_cannot_start_it_is_told_once(
    build_model: BuildModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "capi").mkdir()
    (tmp_path / "capi" / "libonnxruntime_providers_cuda.so").touch()
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    session_module.cuda_failure.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda _: spec)
    try:
        folder = str(build_model())
        assert {Onnx(folder).name, Onnx(folder).name} == {Onnx(folder, device="cpu").name}
        assert len(re.findall("device=auto takes the CPU: ", caplog.text)) == 1
        with pytest.raises(ModelError, match="device is cuda, but onnxruntime cannot start CUDA here"):
            Onnx(folder, device="cuda").embed(["a"], "query")
    finally:
        session_module.cuda_failure.cache_clear()


def test_a_folder_whose_settings_are_all_set_is_not_asked(build_model: BuildModel) -> None:
    folder = build_model()
    name = Onnx(str(folder)).name
    write(folder, "modules.json", [{"type": "x.Dense"}])
    describe(folder, pooling="cls_token", max_seq_length=12, do_lower_case=True)
    assert Onnx(str(folder)).name == name
