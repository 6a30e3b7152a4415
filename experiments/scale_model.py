"""What a large corpus costs: the table of docs/scale.md, from figures that were measured a message.

    python experiments/scale_model.py [FIGURE=VALUE ...] [messages=N,N ...]

Processor-seconds of a stage = messages x processor-seconds a message; hours on p processors = processor-seconds / p /
3600 / efficiency. Disk of a part = messages x bytes a message. The graph of near neighbours grows by the logarithm:
seconds a vector at n = `graph_us` x ln(n) / ln(graph_at), with n the documents of one graph, not of the corpus.
"""

import sys
from dataclasses import dataclass, fields, replace
from math import log

from rich.console import Console
from rich.table import Table

SIZES = (10**6, 10**8, 10**10)


@dataclass(frozen=True)
class Figures:
    """Measured on one of two shared processors; `docs/scale.md` says how."""

    compact_us: float = 1500
    """Processor time a message: read, stored, indexed by word, summarised without a model, after every turn."""
    embed_us: float = 6991
    """Processor time a text of 139 characters, all-MiniLM-L6-v2 int8."""
    graph_us: float = 1036
    """Processor time a vector of 384 dimensions in a graph of `graph_at`, M = 16, ef_construction = 200."""
    graph_at: float = 20_000
    store_bytes: float = 2420
    """Of a store, a message, its words and summaries included."""
    vector_bytes: float = 1536 + 4
    """Of a vector that is kept, float32, with its check."""
    graph_bytes: float = 1685
    """Of a vector in a saved graph, itself included."""
    workspace_messages: float = 20_000
    """Messages that share a graph."""
    efficiency: float = 0.89
    """Work done by two processes in the time of one, halved: 1.78 / 2."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if not getattr(self, one.name) > 0:
                raise ValueError(f"{one.name} must be > 0, got {getattr(self, one.name)}")

    def processor_seconds(self, messages: int) -> dict[str, float]:
        graph = self.graph_us * log(self.workspace_messages) / log(self.graph_at)
        each = {"compact": self.compact_us, "embed": self.embed_us, "index": graph}
        return {stage: messages * us / 1e6 for stage, us in each.items()}

    def disk_bytes(self, messages: int) -> dict[str, float]:
        each = {"stores": self.store_bytes, "vectors": self.vector_bytes, "graphs": self.graph_bytes}
        return {part: messages * size for part, size in each.items()}

    def hours(self, messages: int, processors: int) -> float:
        wasted = self.efficiency if processors > 1 else 1.0
        return sum(self.processor_seconds(messages).values()) / processors / wasted / 3600


def main(arguments: list[str]) -> None:
    given = dict(argument.split("=", 1) for argument in arguments)
    sizes = [int(float(size)) for size in given.pop("messages", ",".join(map(str, SIZES))).split(",")]
    figures = replace(Figures(), **{name: float(value) for name, value in given.items()})
    table = Table("messages", "compact h", "embed h", "index h", "all h", "on 2", "on 64", "on 1,024", "disk GB")
    for size in sizes:
        seconds, disk = figures.processor_seconds(size), figures.disk_bytes(size)
        hours = [*(one / 3600 for one in seconds.values()), *(figures.hours(size, p) for p in (1, 2, 64, 1024))]
        table.add_row(f"{size:,}", *(f"{hour:,.2f}" for hour in hours), f"{sum(disk.values()) / 1e9:,.1f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
