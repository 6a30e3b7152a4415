"""What the choices of summary documents make findable of a conversation of which a part was folded."""

from omegaconf import DictConfig

from pipelines.config import building
from tests.lcm.memory.test_folded_documents import fold, opened


def documented(config: DictConfig) -> object:
    """Every document, with its life."""
    with opened(summary_documents=building.build(config, "summary_documents")) as memory:
        fold(memory, 0, 3, "goats in the kitchen")
        memory.catch_up()
        documents = memory.documents.drop("document_id")  # new ones are numbered
        return documents.rows()
