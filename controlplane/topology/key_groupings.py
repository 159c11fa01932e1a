"""Key groupings and numbers of tasks of queries: checks, and changes while a query runs.

A query that is submitted with a key grouping has an aggregator from its first record to its last; a
query without has none (`SetAggregator`), and its key grouping cannot change.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.topology.apply import Change, apply
from controlplane.topology.rows import Scope, read_part
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.query import is_join
from controlplane.wire.query_text import MAX_TASKS
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.query_actions import LEAST_TASKS, SetKeyGrouping, SetTaskCount
from controlplane.wire.routing.route import (
    HASH,
    KEY_GROUPINGS,
    TaskRange,
    key_grouping_text,
    ranges_of,
    splits_keys,
)

WITHOUT_AGGREGATOR = (
    "{name} was submitted without a key grouping, so it has no aggregator node: end the query and"
    " submit it with a key grouping"
)


@dataclass(frozen=True)
class QuerySetting:
    """A new value of a running query, under its name in the audit log, and its action."""

    name: str
    before: Any
    after: Any
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
    before, after = {setting.name: setting.before}, {setting.name: setting.after}
    code = f"query.{setting.name}"
    change = Change(setting.summary, code, query.name, reason, before, after, query.pk)
    apply(cluster, [setting.action], change, actor=actor)
    return Query.objects.select_related("aggregator").get(pk=query.pk)


def key_grouping_faults(key_grouping: str, tasks: int, *, joins: bool) -> Fields:
    """Return what is wrong with the key grouping of a query, "" for none, by field."""
    if not key_grouping:
        return {}
    if faults := _name_faults(key_grouping, joins=joins):
        return {"key_grouping": faults}
    if tasks <= 1:
        return {"key_grouping": ["Needs more than one task"]}
    return {}


def set_key_grouping(actor: Actor, query: Query, key_grouping: str, reason: str = "") -> Query:
    """Set the key grouping of a running query, from the next batch on.

    The aggregator merges the parts of a key. Raises `Invalid`, and as `change_query`.
    """

    def decide(_: Cluster, query: Query) -> QuerySetting:
        if faults := _name_faults(key_grouping, joins=is_join(text_of(query))):
            raise Invalid({"key_grouping": faults})
        summary = f"{query.name}: keys find their task {KEY_GROUPINGS[key_grouping].title}"
        action = SetKeyGrouping(query.pk, key_grouping_text(key_grouping))
        return QuerySetting("key_grouping", query.key_grouping, key_grouping, summary, action)

    return change_query(actor, query, reason, decide)


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
        return QuerySetting("tasks", query.task_count, tasks, summary, action)

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


def _name_faults(key_grouping: str, *, joins: bool) -> list[str]:
    if key_grouping not in KEY_GROUPINGS:
        return [f"Must be one of {', '.join(KEY_GROUPINGS)}, not {key_grouping[:40] or 'empty'}"]
    if joins and splits_keys(key_grouping):
        return [f"Records that are joined must meet in one task: {HASH} only"]
    return []
