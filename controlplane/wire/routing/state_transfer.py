"""What leads from one routing table to the next: tasks that export their state."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.routing import RoutingTable, with_moves

# What an aggregator node keeps of a query moves like a task of this number.
AGGREGATOR_TASK: Final = -1


@dataclass(frozen=True, slots=True)
class TaskTransfer:
    """A task whose state moves to another node; `AGGREGATOR_TASK`: the aggregator's state."""

    query: int
    task: int
    source: int
    target: int


def task_transfers(before: RoutingTable, after: RoutingTable) -> Iterator[TaskTransfer]:
    """Yield the tasks that change their node between two tables and keep their state.

    A query that ended, came, or began a new incarnation in between exports nothing.
    """
    for query, route in after.queries.items():
        old = before.queries.get(query)
        if old is None or old is route or old.incarnation != route.incarnation:
            continue
        if old.aggregator != route.aggregator:
            yield TaskTransfer(query, AGGREGATOR_TASK, old.aggregator, route.aggregator)
        pairs = zip(old.owners(), route.owners(), strict=True)
        for task, (source, target) in enumerate(pairs):
            if source != target:
                yield TaskTransfer(query, task, source, target)


def transition_table(before: RoutingTable, after: RoutingTable) -> RoutingTable:
    """Return the table of the batch that leads from one to the other.

    It is the later one, but tasks that export their state are still where they were: they take
    this batch's records there, and their state, with all of them in it, goes to the next batch.
    """
    queries = dict(after.queries)
    for transfer in task_transfers(before, after):
        route = queries[transfer.query]
        if transfer.task == AGGREGATOR_TASK:
            queries[transfer.query] = replace(route, aggregator=transfer.source)
            continue
        queries[transfer.query] = with_moves(
            transfer.query, route, [(transfer.source, transfer.task, transfer.task + 1)]
        )
    # A node that is removed by the later table still emits the state of its tasks.
    return replace(after, queries=queries, node_count=max(before.node_count, after.node_count))
