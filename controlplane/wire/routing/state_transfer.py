"""What leads from one routing table to the next: tasks that export their state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.routing.route import with_aggregators, with_owners
from controlplane.wire.routing.table import RoutingTable

# The state of the first aggregator node of a query moves like a task of this number, that of the
# next ones like tasks of the numbers below.
AGGREGATOR_TASK: Final = -1


@dataclass(frozen=True, slots=True)
class TaskTransfer:
    """A task whose state moves to another node; from `AGGREGATOR_TASK` down: aggregators' state.

    A task that is removed transfers its backlog alone, to the task `successor`: the aggregator has
    its windows.
    """

    query: int
    task: int
    source: int
    target: int
    successor: int | None = None

    @property
    def is_aggregator(self) -> bool:
        """Return whether the state is that of an aggregator node."""
        return self.task <= AGGREGATOR_TASK


def task_transfers(before: RoutingTable, after: RoutingTable) -> Iterator[TaskTransfer]:
    """Yield the tasks that change their node between two tables and keep their state.

    A query that ended, was added, or started a new incarnation in between exports nothing.
    """
    for query, route in after.queries.items():
        old = before.queries.get(query)
        if old is None or old is route or old.incarnation != route.incarnation:
            continue
        yield from _aggregator_transfers(query, old.aggregators, route.aggregators)
        owners = route.owners()
        for task, source in enumerate(old.owners()):
            if task >= len(owners):
                successor = task % len(owners)
                yield TaskTransfer(query, task, source, owners[successor], successor)
            elif source != owners[task]:
                yield TaskTransfer(query, task, source, owners[task])


def _aggregator_transfers(
    query: int, before: Sequence[int], after: Sequence[int]
) -> Iterator[TaskTransfer]:
    """Yield the moves of aggregators' state; of another number, each node needs a part of all."""
    for place, source in enumerate(before):
        targets = [after[place]] if len(before) == len(after) else after
        for target in targets:
            if len(before) != len(after) or source != target:
                yield TaskTransfer(query, AGGREGATOR_TASK - place, source, target)


def transition_table(before: RoutingTable, after: RoutingTable) -> RoutingTable:
    """Return the table of the batch that leads from one to the other.

    It is the later one, but tasks that export their state, or are removed, are still at their node:
    they process this batch's records there, and the next batch imports their state.
    """
    queries = dict(after.queries)
    for transfer in task_transfers(before, after):
        old, route = before.queries[transfer.query], queries[transfer.query]
        if transfer.is_aggregator:
            queries[transfer.query] = with_aggregators(route, old.aggregators)
            continue
        added = route.owners()[len(old.owners()) :]
        queries[transfer.query] = with_owners(route, old.owners() + added)
    # A node that is removed by the later table still emits the state of its tasks.
    return replace(after, queries=queries, node_count=max(before.node_count, after.node_count))
