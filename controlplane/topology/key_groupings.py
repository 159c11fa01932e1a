"""Key groupings and numbers of tasks of queries: checks, and changes while a query runs.

A query that is submitted with a key grouping has an aggregator from its first record to its last; a
query without has none (`SetAggregator`), and its key grouping cannot change.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.errors import Conflict, Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.queries.key_groupings import (
    PARAMETERS,
    grouping_faults,
    label_of,
    route_text,
    stored_parameters,
)
from controlplane.topology.apply import TopologyChange, apply
from controlplane.topology.rows import Scope, read_part
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.query import is_join
from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import LEAST_TASKS, SetKeyGrouping, SetTaskCount
from controlplane.wire.routing.route import TaskRange, ranges_of

WITHOUT_AGGREGATOR = (
    "{name} was submitted without a key grouping, so it has no aggregator node: end the query and"
    " submit it with a key grouping"
)


@dataclass(frozen=True)
class QuerySetting:
    """New values of a running query by their names in the audit log, and the action.

    `name`: the part of the audit record's name after "query.".
    """

    name: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    summary: str
    action: Action


@retry_when_moved
def change_query(
    actor: Actor, query: Query, reason: str, decide: Callable[[Cluster, Query], QuerySetting]
) -> Query:
    """Change a setting of a running query with an aggregator node; open windows continue.

    `decide`: returns the setting for the cluster and the query as they are now; an equal value
    changes nothing. Raises `Forbidden`, and `Conflict` for a query that does not run or has no
    aggregator node.
    """
    require_operator(actor, query.cluster)
    # The version first: what changes behind it makes the append fail.
    cluster = Cluster.objects.get(pk=query.cluster_id)
    query = Query.objects.select_related("aggregator").get(pk=query.pk)
    if query.state != Query.State.RUNNING:
        message = f"{query.name} is {query.state}, not running"
        raise Conflict("not_running", message, {"state": query.state})
    if query.aggregator is None:
        raise Conflict("no_aggregator", WITHOUT_AGGREGATOR.format(name=query.name))
    setting = decide(cluster, query)
    if setting.after == setting.before:
        return query
    change = TopologyChange(
        setting.summary, f"query.{setting.name}", query.name, reason, setting.before,
        setting.after, query.pk,
    )  # fmt: skip
    apply(cluster, [setting.action], change, actor=actor)
    return Query.objects.select_related("aggregator").get(pk=query.pk)


def set_key_grouping(
    actor: Actor,
    query: Query,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    reason: str = "",
) -> Query:
    """Set the key grouping of a running query with its parameters, from the next batch on.

    `parameters`: by name, the others have their defaults. The aggregator merges the parts of a
    key. Raises `Invalid`, and as `change_query`.
    """
    given = parameters or {}

    def decide(_: Cluster, query: Query) -> QuerySetting:
        faults = grouping_faults(name, given, joins=is_join(text_of(query)))
        if faults or not name:
            raise Invalid(faults or {"key_grouping": ["Name a key grouping"]})
        stored = stored_parameters(name, given)
        action = SetKeyGrouping(query.pk, route_text(name, stored))
        summary = f"The key grouping of {query.name} is {label_of(action.key_grouping)}"
        before = _grouping_values(query.key_grouping, query.key_grouping_parameters)
        return QuerySetting("key_grouping", before, _grouping_values(name, stored), summary, action)

    return change_query(actor, query, reason, decide)


def _grouping_values(name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"key_grouping": name, PARAMETERS: dict(parameters)}


def set_task_count(actor: Actor, query: Query, tasks: int, reason: str = "") -> Query:
    """Set the number of tasks of a running query; open windows continue.

    New tasks start on the active nodes with the fewest tasks of the query by their capacity. The
    last tasks are removed. Raises `Invalid`, and as `change_query`.
    """

    def decide(cluster: Cluster, query: Query) -> QuerySetting:
        if not LEAST_TASKS <= tasks <= MAX_TASKS:
            raise Invalid({"tasks": [f"Must be {LEAST_TASKS} to {MAX_TASKS:,}, not {tasks:,}"]})
        if is_join(text_of(query)):
            message = f"{query.name} is a join: its records meet in a fixed number of tasks"
            raise Conflict("fixed_tasks", message)
        owners = read_part(cluster, Scope(queries=[query.pk])).route(query.pk).owners()
        added = added_tasks(_active_nodes(cluster), owners, tasks) if tasks > len(owners) else ()
        action = SetTaskCount(query.pk, tasks, added)
        summary = f"{query.name} has {tasks} tasks"
        before, after = {"tasks": query.task_count}, {"tasks": tasks}
        return QuerySetting("tasks", before, after, summary, action)

    return change_query(actor, query, reason, decide)


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
