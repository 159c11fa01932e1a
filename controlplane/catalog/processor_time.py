"""The estimated processor time of queries: the measured time of nodes, divided by records.

The page of a query, lists, files and the API have it from here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from controlplane.wire.measures import TaskMeasure


def processor_percents(tasks: Iterable[TaskMeasure], busy: Mapping[int, float]) -> dict[int, float]:
    """Return the part of a second that nodes compute for each query, in % of one processor.

    `busy`: the share of time that each node computes, by index; queries on other nodes only are
    left out. An estimate: the time of a node is divided among its queries by their records. A query
    whose records need more than those of others, or that shares its work, is off by it.
    """
    records: dict[tuple[int, int], float] = defaultdict(float)
    totals: dict[int, float] = defaultdict(float)
    for task in tasks:
        records[task.query, task.node] += task.evaluations_per_s
        totals[task.node] += task.evaluations_per_s
    # Of a record per second on each node.
    cost = {
        node: 100 * busy[node] / total for node, total in totals.items() if total and node in busy
    }
    result: dict[int, float] = {}
    for (query, node), rate in records.items():
        if node in cost:
            result[query] = result.get(query, 0.0) + rate * cost[node]
    return result
