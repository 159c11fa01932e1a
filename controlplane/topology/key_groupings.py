"""Key groupings and aggregator nodes of queries: validate them, change them while a query runs.

A query that is submitted with a key grouping has an aggregator from its first record to its last; a
query without has none (`SetAggregator`), and its key grouping cannot change.
"""

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.planning.online import read_online
from controlplane.topology.aggregators import AggregatorNodes
from controlplane.topology.apply import Change, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing import SetAggregator, SetAggregators, SetKeyGrouping
from controlplane.wire.routing.route import (
    HASH,
    KEY_GROUPINGS,
    key_grouping_text,
    splits_keys,
)

WITHOUT_AGGREGATOR = (
    "{name} was submitted without a key grouping, so it has no aggregator node: end the query and"
    " submit it with a key grouping"
)


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

    Open windows continue: the aggregator merges the parts of a key. Raises `Forbidden`,
    `Invalid`, and `Conflict` for a query that does not run or has no aggregator node.
    """
    require_operator(actor, query.cluster)
    if faults := _name_faults(key_grouping, joins=_joins(query)):
        raise Invalid({"key_grouping": faults})
    return retry_when_moved(lambda: _set_key_grouping(actor, query, key_grouping, reason))


def set_aggregator(actor: Actor, query: Query, index: int | None, reason: str = "") -> Query:
    """Set the aggregator of a running query, None for the least loaded node; windows continue.

    Raises `Forbidden`, `Invalid`, and `Conflict` for a query that does not run or has no merge
    node.
    """
    require_operator(actor, query.cluster)
    return retry_when_moved(lambda: _set_aggregator(actor, query, index, reason))


def set_aggregator_count(actor: Actor, query: Query, count: int, reason: str = "") -> Query:
    """Set the number of aggregator nodes of a running query; each has its share of the keys.

    Present ones stay as far as possible, the least loaded others are added. Raises `Forbidden`,
    `Invalid`, and `Conflict` for a query that does not run or has no aggregator node.
    """
    require_operator(actor, query.cluster)
    return retry_when_moved(lambda: _set_aggregator_count(actor, query, count, reason))


def _set_aggregator_count(actor: Actor, query: Query, count: int, reason: str) -> Query:
    cluster, query = running_with_aggregator(query)
    nodes = {node.index: node for node in cluster.nodes.filter(active=True)}
    if not 1 <= count <= len(nodes):
        message = f"Must be 1 to {len(nodes)}, the active nodes, not {count:,}"
        raise Invalid({"count": [message]})
    assert query.aggregator is not None
    before = [query.aggregator.index, *query.more_aggregators]
    problem = read_online(cluster)
    assert problem is not None, "there are active nodes"
    present = [nodes[index] for index in before if index in nodes]
    chosen = AggregatorNodes(cluster, problem).take_several(count, present)
    after = [node.index for node in chosen]
    if after == before:
        return query
    query.aggregator, query.more_aggregators = chosen[0], after[1:]
    change = Change(
        f"{query.name} is merged on {', '.join(node.name for node in chosen)}",
        "query.aggregators",
        query.name,
        reason=reason,
        before={"aggregators": before},
        after={"aggregators": after},
        pk=query.pk,
    )
    apply(cluster, [SetAggregators(query.pk, tuple(after))], change, actor=actor)
    return query


def _set_key_grouping(actor: Actor, query: Query, key_grouping: str, reason: str) -> Query:
    cluster, query = running_with_aggregator(query)
    before = query.key_grouping
    if key_grouping == before:
        return query
    query.key_grouping = key_grouping
    change = Change(
        f"{query.name}: keys find their task {KEY_GROUPINGS[key_grouping].title}",
        "query.key_grouping",
        query.name,
        reason=reason,
        before={"key_grouping": before},
        after={"key_grouping": key_grouping},
        pk=query.pk,
    )
    apply(cluster, [SetKeyGrouping(query.pk, key_grouping_text(key_grouping))], change, actor=actor)
    return query


def _set_aggregator(actor: Actor, query: Query, index: int | None, reason: str) -> Query:
    cluster, query = running_with_aggregator(query)
    before = query.aggregator
    assert before is not None
    node = _least_loaded(cluster, before) if index is None else _active(cluster, index)
    if node == before and not query.more_aggregators:
        return query
    query.aggregator, query.more_aggregators = node, []
    change = Change(
        f"{query.name} is merged on {node.name}",
        "query.aggregator",
        query.name,
        reason=reason,
        before={"aggregator": before.index},
        after={"aggregator": node.index},
        pk=query.pk,
    )
    apply(cluster, [SetAggregator(query.pk, node.index)], change, actor=actor)
    return query


def running_with_aggregator(query: Query) -> tuple[Cluster, Query]:
    """Return the cluster with its version, then the query with its aggregator, read again."""
    # The version first: what changes behind it makes the append fail.
    cluster = Cluster.objects.get(pk=query.cluster_id)
    query = Query.objects.select_related("aggregator").get(pk=query.pk)
    if query.state != Query.State.RUNNING:
        message = f"{query.name} is {query.state}, not running"
        raise Conflict("not_running", message, {"state": query.state})
    if query.aggregator is None:
        raise Conflict("no_aggregator", WITHOUT_AGGREGATOR.format(name=query.name))
    return cluster, query


def _active(cluster: Cluster, index: int) -> Node:
    node = cluster.nodes.filter(index=index).first()
    if node is None:
        raise Invalid({"node": [f"There is no node {index}"]})
    if not node.active:
        raise Invalid({"node": [f"{node.name} is not active"]})
    return node


def _least_loaded(cluster: Cluster, present: Node) -> Node:
    problem = read_online(cluster)
    node = None if problem is None else AggregatorNodes(cluster, problem).other_than(present)
    if node is None:
        raise Invalid({"node": ["No other node is active"]})
    return node


def _joins(query: Query) -> bool:
    text = text_of(query)
    return bool(text.right)


def _name_faults(key_grouping: str, *, joins: bool) -> list[str]:
    if key_grouping not in KEY_GROUPINGS:
        return [f"Must be one of {', '.join(KEY_GROUPINGS)}, not {key_grouping[:40] or 'empty'}"]
    if joins and splits_keys(key_grouping):
        return [f"Records that are joined must meet in one task: {HASH} only"]
    return []
