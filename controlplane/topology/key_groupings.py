"""Key schemes and merge nodes: what a query is submitted with, and changing them while it runs.

Who has to look at what a query gives out must not change while it lives (`SetAggregator`):
so a query that is submitted with a scheme has a merge node from its first record to its last, and
one without never has. Only the former can change its scheme.
"""

from controlplane.access.roles import Actor, require_operator
from controlplane.catalog.computations import text_of
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.planning.online import read_online
from controlplane.topology.aggregators import MergeNodes
from controlplane.topology.apply import Change, apply
from controlplane.topology.versions import retry_when_moved
from controlplane.wire.routing import SetAggregator, SetKeyGrouping
from controlplane.wire.routing.key_groupings import (
    HASH,
    KEY_GROUPINGS,
    key_grouping_text,
    splits_keys,
)

NO_MERGE_NODE = (
    "{name} was submitted without a scheme: it has no merge node, and gets none while it lives. End"
    " it and submit it with a scheme"
)


def scheme_faults(scheme: str, tasks: int, *, joins: bool) -> Fields:
    """Return what is wrong with the scheme of a query, "" for none, by field."""
    if not scheme:
        return {}
    if faults := _name_faults(scheme, joins=joins):
        return {"scheme": faults}
    if tasks <= 1:
        return {"scheme": ["Needs more than one task: it says which of them a key goes to"]}
    return {}


def set_scheme(actor: Actor, query: Query, scheme: str, reason: str = "") -> Query:
    """Let the keys of a running query find their task by another scheme, from the next batch on.

    Its windows go on: parts that a key has on several tasks are merged. Raises `Forbidden`,
    `Invalid`, and `Conflict` for a query that does not run or has no merge node.
    """
    require_operator(actor, query.cluster)
    if faults := _name_faults(scheme, joins=_joins(query)):
        raise Invalid({"scheme": faults})
    return retry_when_moved(lambda: _set_scheme(actor, query, scheme, reason))


def move_merge(actor: Actor, query: Query, index: int | None, reason: str = "") -> Query:
    """Let another node merge a running query, None for the least loaded; its windows go on.

    Raises `Forbidden`, `Invalid`, and `Conflict` for a query that does not run or has no merge
    node.
    """
    require_operator(actor, query.cluster)
    return retry_when_moved(lambda: _move_merge(actor, query, index, reason))


def _set_scheme(actor: Actor, query: Query, scheme: str, reason: str) -> Query:
    cluster, query = _fresh(query)
    before = query.scheme
    if scheme == before:
        return query
    query.scheme = scheme
    change = Change(
        f"{query.name}: keys find their task {KEY_GROUPINGS[scheme].title}",
        "query.scheme",
        query.name,
        reason=reason,
        before={"scheme": before},
        after={"scheme": scheme},
        pk=query.pk,
    )
    apply(cluster, [SetKeyGrouping(query.pk, key_grouping_text(scheme))], change, actor=actor)
    return query


def _move_merge(actor: Actor, query: Query, index: int | None, reason: str) -> Query:
    cluster, query = _fresh(query)
    before = query.merge_node
    assert before is not None
    node = _least_loaded(cluster, before) if index is None else _active(cluster, index)
    if node == before:
        return query
    query.merge_node = node
    change = Change(
        f"{query.name} is merged on {node.name}",
        "query.merge_node",
        query.name,
        reason=reason,
        before={"merge_node": before.index},
        after={"merge_node": node.index},
        pk=query.pk,
    )
    apply(cluster, [SetAggregator(query.pk, node.index)], change, actor=actor)
    return query


def _fresh(query: Query) -> tuple[Cluster, Query]:
    """Return the cluster with its version, then the query as it is now, with its merge node."""
    # The version first: what changes behind it makes the append fail.
    cluster = Cluster.objects.get(pk=query.cluster_id)
    query = Query.objects.select_related("merge_node").get(pk=query.pk)
    if query.state != Query.State.RUNNING:
        message = f"{query.name} is {query.state}, not running"
        raise Conflict("not_running", message, {"state": query.state})
    if query.merge_node is None:
        raise Conflict("no_merge_node", NO_MERGE_NODE.format(name=query.name))
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
    node = None if problem is None else MergeNodes(cluster, problem).other_than(present)
    if node is None:
        raise Invalid({"node": ["No other node is active"]})
    return node


def _joins(query: Query) -> bool:
    text = text_of(query)
    return bool(text.right)


def _name_faults(scheme: str, *, joins: bool) -> list[str]:
    if scheme not in KEY_GROUPINGS:
        return [f"Must be one of {', '.join(KEY_GROUPINGS)}, not {scheme[:40] or 'empty'}"]
    if joins and splits_keys(scheme):
        return [f"Records that are joined must meet in one task: {HASH} only"]
    return []
