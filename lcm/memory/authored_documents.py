"""Authored blocks in a workspace: stored as their files say them now, with documents of those that are to be found."""

from collections.abc import Sequence

from lcm.errors import LcmError
from lcm.protocols.context import Assembly
from lcm.records.document import AuthoredNode
from lcm.store.guidance import drop_documents, put_nodes, read_nodes
from lcm.store.store import Store
from lcm.writing.new_document import document_of_node


def put_authored(store: Store, nodes: Sequence[AuthoredNode], assembly: Assembly) -> bool:
    """Let the store hold these blocks and no others; says whether it held others before.

    Raises:
        LcmError: if there are blocks that must be shown, and the assembly never shows any.
    """
    unseen = sum(node.tier != "variant" for node in nodes)
    if unseen and not assembly.shows_documents:
        raise LcmError(
            f"authored holds {unseen} hard and soft blocks, which this assembly never shows: choose "
            "assembly=continuity, or authored=none"
        )
    with store.reading() as connection:
        if list(nodes) == read_nodes(connection):
            return False
    with store.writing() as connection:
        put_nodes(connection, nodes)
        drop_documents(connection, "authored")
        store.add_documents([document_of_node(node) for node in nodes if node.tier == "variant"])
    return True
