"""Over which nodes the tasks of a query go when it is placed."""

from collections.abc import Sequence

from controlplane.models import Node
from controlplane.wire.routing import TaskRange


def task_ranges_over(nodes: Sequence[Node], first: Node, tasks: int) -> tuple[TaskRange, ...]:
    """Return contiguous intervals of tasks, as many on each node as its share of all capacity.

    The intervals begin at `first`, which gets at least one task, and go round the nodes by index.
    A node whose share is less than a task may get none. What the shares leave over goes to those
    whose share was cut most (the method of largest remainders).
    """
    ordered = sorted(nodes, key=lambda node: (node.index < first.index, node.index))
    counts = _shares([node.capacity for node in ordered], tasks)
    if not counts[0]:
        counts[counts.index(max(counts))] -= 1
        counts[0] = 1
    task_ranges, start = [], 0
    for node, count in zip(ordered, counts, strict=True):
        if count:
            task_ranges.append((node.index, start, start + count))
            start += count
    return tuple(task_ranges)


def _shares(weights: Sequence[float], tasks: int) -> list[int]:
    total = sum(weights)
    exact = [tasks * weight / total for weight in weights]
    counts = [int(share) for share in exact]
    by_rest = sorted(range(len(weights)), key=lambda index: (counts[index] - exact[index], index))
    for index in by_rest[: tasks - sum(counts)]:
        counts[index] += 1
    return counts
