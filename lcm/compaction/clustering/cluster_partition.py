"""Partition of a conversation's turns into runs of equal length.

Source: libravdb memory 1.3.5, mathematical reference, section 5.
"""


def partition(count: int, target_size: int) -> list[range]:
    """Cut `count` turns, in order, into ceil(count / target_size) clusters whose sizes differ by at most one.

    Turn i of n stands in cluster floor(i c / n), where c is the number of clusters; no turns make no cluster.
    """
    clusters = -(-count // target_size)
    starts = [-(-number * count // clusters) for number in range(clusters)]
    return [range(start, stop) for start, stop in zip(starts, [*starts[1:], count], strict=True)] if count else []
