"""Why some knobs change no number."""

from collections.abc import Mapping

from tests.support.knobs.families import GATES
from tests.support.knobs.small_datasets import SMALL_DATASETS

PUBLISHED = ("beam", "dialogsum", "lmeb", "locomo", "longmemeval", "personamem", "qmsum")
"""Datasets that are taken in a published form."""

REASONS: Mapping[str, str] = {
    **{f"admission/{name}:token_estimator.empty_tokens": "in an empty text nothing is counted" for name in GATES},
    **{f"admission/{name}:token_estimator.image_tokens": "a gate reads words" for name in GATES},
    "arms/controls:last_n.order": "this arm has no stage",
    "arms/controls:random.order": "this arm has no stage",
    "arms/controls:whole_history.order": "this arm has no stage",
    "config:report": "a page shows the numbers, and makes none",
    "config:cache": "rows from the cache are those of the embedder, bit for bit",
    **{
        f"config:stages.{key}": "where and how much is kept changes no number"
        for key in ("directory", "max_gib", "memory_gib")
    },
    "measures/latency:latency.warmup_queries": "asked first and not counted",
    **{
        f"dataset/{name}:directory": "where the files lie; they are the same"
        for name in (*SMALL_DATASETS, "sample", "sample_long")
    },
    **{f"dataset/{name}:pinned": "what refuses an unknown file changes nothing in a known one" for name in PUBLISHED},
    **{
        f"dataset/{name}:{key}": why
        for name in ("own", "transcripts")
        for key, why in {
            "format": "the format that is detected and the same one named read the same",
            "copies": "nothing is written twice in what is read here",
            "strict": "what refuses a damaged file changes nothing in a whole one",
        }.items()
    },
    "dataset/own:similarity": "below it a question is refused: nothing else is found",
    "dataset/own:store": "where questions name messages by their numbers",
    **{
        f"decay/{name}:stale_threshold": "measures=staleness alone asks which documents are stale"
        for name in ("weibull", "weibull_fast", "weibull_slow")
    },
    "embedder/minilm:directory": "where the weights lie",
    "embedder/openai_compatible:workers": "a row does not depend on the requests beside its own",
    "embedder/openai_compatible:timeout_seconds": "how long a server may take, not what it replies",
    "embedder/openai_compatible:retries": "how often a server is asked that fails",
    "embedder/openai_compatible:revision": "tells apart models of one name in the cache",
    "embedder/minilm:file": "the name of the graph that is found without it",
    "embedder/minilm:model": "an export of the published weights is found before it",
    **{
        f"embedder/{name}:threads": "a row depends on nothing but its text"
        for name in ("hub", "minilm", "nomic", "onnx")
    },
    **{
        f"embedder/{name}:device": "auto takes the CPU where there is no GPU"
        for name in ("hub", "minilm", "nomic", "onnx")
    },
    **{
        f"embedder/{name}:precision": "of an export; an .onnx file is used as it is"
        for name in ("hub", "nomic", "onnx")
    },
    **{f"embedder/{name}:model": "a directory comes before it" for name in ("nomic", "onnx")},
    **{f"executor/{name}:workers": "results do not depend on how many work at once" for name in ("local", "ray")},
    **{
        f"external/{name}:{limit}": "how long is waited and how much is read, not what comes"
        for name in ("stdio", "object", "http", "mcp")
        for limit in ("timeout_s", "start_s", "reply_mib")
    },
    **{f"external/mcp:{key}": "where the server is, not what it is asked" for key in ("command", "url", "environment")},
    "ranking/external:revision": "tells logs that are kept apart",
    "executor/ray:address": "nor on which machines",
    "executor/ray:num_cpus": "nor on how many processors each has",
    "executor/ray:runtime_env": "what workers find besides: nothing here asks for it",
    "language_model/openai_compatible:model.api_key_file": "tried where every key before it was refused",
    "language_model/openai_compatible:model.timeout_seconds": "how long a server may take, not what it replies",
    **{
        f"reranker/cross_encoder:blend.{name}": "a cross-encoder returns every document"
        for name in ("unreturned_weight", "strong_floor_unreturned", "fair_floor_unreturned", "weak_floor_unreturned")
    },
    **{
        f"ranking/{name}:stages.noise_filter.complaints": "nobody complains about the memory here"
        for name in ("lancedb_pro", "lancedb_pro_beta11")
    },
    "ranking/lancedb_pro:stages.related.containment": "every text of these holds words, which find others first",
    "ranking/unified:source.times": "no question of these names a time in which something was said",
    "recovery/semantic_slots:puts_pair_first": "it seeks no pair",
    "reranker/cross_encoder:threads": "a score depends on nothing but its pair",
    "summarizer/t5:device": "auto takes the CPU where there is no GPU",
    "reranker/cross_encoder:device": "auto takes the CPU where there is no GPU",
    "reranker/cross_encoder:precision": "of an export; an .onnx file is used as it is",
    "reranker/cross_encoder:model": "a directory comes before it",
    "reranker/remote:timeout_ms": "how long a service may take, not what it replies",
    "reranker/remote:workers": "a query's reply does not depend on those asked beside it",
    "scheduling/asynchronous:closing_seconds": "a live session alone waits for a thread",
    "summarizer/llm:timeout_seconds": "how long a summary may take, not what it says",
    "summarizer/llm:workers": "a summary does not depend on those asked for beside it",
    "summarizer/t5:batch_size": "what stands beside a text decides only between choices nearer than rounding",
    "summarizer/t5:threads": "a summary depends on nothing but its request",
    "tracking/mlflow:timeout_s": "how long a server may take, not what it is told",
}
