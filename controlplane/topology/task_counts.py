"""The number of tasks of a running query that an aggregator node merges."""

from collections import Counter
from collections.abc import Sequence

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.topology.apply import Change, apply
from controlplane.topology.key_groupings import running_with_aggregator
from controlplane.topology.rows import Scope, read_part
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.query import is_join
from controlplane.wire.routing import LEAST_TASKS, MAX_TASKS, SetTaskCount, TaskRange, ranges_of


def set_task_count(actor: Actor, query: Query, tasks: int, reason: str = "") -> Query:
    """Set the number of tasks of a running query; open windows continue.

    New tasks start on the active nodes with the fewest tasks of the query by their capacity. The
    last tasks are removed. Raises `Forbidden`, `Invalid`, and `Conflict` for a query that does not
    run or has no aggregator node.
    """
    require_operator(actor, query.cluster)
    if not LEAST_TASKS <= tasks <= MAX_TASKS:
        raise Invalid({"tasks": [f"Must be {LEAST_TASKS} to {MAX_TASKS:,}, not {tasks:,}"]})
    return retry_when_moved(lambda: _set_task_count(actor, query, tasks, reason))


def _set_task_count(actor: Actor, query: Query, tasks: int, reason: str) -> Query:
    cluster, query = running_with_aggregator(query)
    if is_join(text_of(query)):
        message = f"{query.name} is a join: its records meet in a fixed number of tasks"
        raise Conflict("fixed_tasks", message)
    before = query.task_count
    if tasks == before:
        return query
    owners = read_part(cluster, Scope(queries=[query.pk])).route(query.pk).owners()
    added = added_tasks(_active_nodes(cluster), owners, tasks) if tasks > before else ()
    action = SetTaskCount(query.pk, tasks, added)
    change = Change(
        f"{query.name} has {tasks} tasks",
        "query.tasks",
        query.name,
        reason=reason,
        before={"tasks": before},
        after={"tasks": tasks},
        pk=query.pk,
    )
    apply(cluster, [action], change, actor=actor)
    query.task_count = tasks
    return query


def added_tasks(nodes: Sequence[Node], owners: Sequence[int], tasks: int) -> tuple[TaskRange, ...]:
    """Return the ranges of the tasks that a query lacks, each where it has fewest by capacity."""
    hosted = Counter(owners)
    added = []
    for task in range(len(owners), tasks):
        node = min(nodes, key=lambda node: ((hosted[node.index] + 1) / node.capacity, node.index))
        hosted[node.index] += 1
        added.append((task, node.index))
    return ranges_of(added)


def _active_nodes(cluster: Cluster) -> list[Node]:
    nodes = list(cluster.nodes.filter(active=True, index__lt=cluster.slots).order_by("index"))
    if not nodes:
        raise Conflict("no_active_node", "No node is active: activate one before adding tasks")
    return nodes
