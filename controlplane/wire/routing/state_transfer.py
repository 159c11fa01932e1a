"""What leads from one routing table to the next: tasks that export their state."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.routing import RoutingTable, with_owners

# What an aggregator node keeps of a query moves like a task of this number.
AGGREGATOR_TASK: Final = -1


@dataclass(frozen=True, slots=True)
class TaskTransfer:
    """A task whose state moves to another node; `AGGREGATOR_TASK`: the aggregator's state.

    A task that is removed transfers its backlog alone, to the task `successor`: the aggregator has
    its windows.
    """

    query: int
    task: int
    source: int
    target: int
    successor: int | None = None


def task_transfers(before: RoutingTable, after: RoutingTable) -> Iterator[TaskTransfer]:
    """Yield the tasks that change their node between two tables and keep their state.

    A query that ended, was added, or started a new incarnation in between exports nothing.
    """
    for query, route in after.queries.items():
        old = before.queries.get(query)
        if old is None or old is route or old.incarnation != route.incarnation:
            continue
        if old.aggregator != route.aggregator:
            yield TaskTransfer(query, AGGREGATOR_TASK, old.aggregator, route.aggregator)
        owners = route.owners()
        for task, source in enumerate(old.owners()):
            if task >= len(owners):
                successor = task % len(owners)
                yield TaskTransfer(query, task, source, owners[successor], successor)
            elif source != owners[task]:
                yield TaskTransfer(query, task, source, owners[task])


def transition_table(before: RoutingTable, after: RoutingTable) -> RoutingTable:
    """Return the table of the batch that leads from one to the other.

    It is the later one, but tasks that export their state, or are removed, are still at their node:
    they process this batch's records there, and the next batch imports their state.
    """
    queries = dict(after.queries)
    for transfer in task_transfers(before, after):
        old, route = before.queries[transfer.query], queries[transfer.query]
        if transfer.task == AGGREGATOR_TASK:
            queries[transfer.query] = replace(route, aggregator=transfer.source)
            continue
        added = route.owners()[len(old.owners()) :]
        queries[transfer.query] = with_owners(route, old.owners() + added)
    # A node that is removed by the later table still emits the state of its tasks.
    return replace(after, queries=queries, node_count=max(before.node_count, after.node_count))
