"""Applying actions: the only code that changes the topology of a cluster.

One transaction writes the rows, the routing version, the audit record and the event. The rows
follow from the effect of the actions on the routing table (`store`), so that the table rebuilt from
the rows is always the table that the published versions lead to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Actor
from controlplane.errors import Conflict
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, Proposal, RoutingVersion
from controlplane.planning.resolution import nodes_of
from controlplane.topology import versions
from controlplane.topology.publishing import publish_unpublished
from controlplane.topology.rows import Scope, declared_nodes, read_part
from controlplane.topology.store import Writer, write_rows
from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.actions import Action, ObjectKind, TableDraft
from controlplane.wire.routing.cluster_actions import (
    OF_STREAM,
    RemoveStream,
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetNodeActive,
    SetNodeCount,
    SetSplitCapacity,
    SetSplitCount,
)
from controlplane.wire.routing.drop_rules import INPUT
from controlplane.wire.routing.query_actions import AddQuery, RemoveQuery
from controlplane.wire.routing.route import Route


class ActionRejected(Conflict):
    """An action that the present topology does not allow; `index`: its place among the actions."""

    def __init__(
        self, code: str, message: str, index: int, data: Mapping[str, Any] | None = None
    ) -> None:
        self.index = index
        super().__init__(code, message, {**(data or {}), "action": index})


@dataclass(frozen=True)
class TopologyChange:
    """Why the topology changes: for the routing version, the audit log and the event.

    `summary`: a sentence for people. `action`: code of the audit record, "" for no record of its
    own. `subject`, `reason`, `before`, `after`: of the audit record. `pk`: the row that a browser
    may be showing. `author`: who decides without an audit record of its own, e.g. an approver.
    """

    summary: str
    action: str = ""
    subject: str = ""
    reason: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    pk: int | None = None
    author: str = ""
    snapshot: str | None = None


@dataclass(frozen=True)
class Applied:
    """The routing version of applied actions, and per action what reverts it, if requested."""

    version: RoutingVersion
    inverses: tuple[tuple[Action, ...], ...] = ()


@transaction.atomic
def apply(
    cluster: Cluster,
    actions: Sequence[Action],
    change: TopologyChange,
    *,
    actor: Actor | None = None,
    proposal: Proposal | None = None,
    inverses: bool = False,
) -> Applied:
    """Apply actions in their order as one routing version.

    `cluster.routing_version` is the version for which the actions were decided. Raises
    `VersionMoved` if the cluster has another version by now, and `ActionRejected` with the first
    action that does not fit the topology; both change nothing.
    """
    before = read_part(cluster, scope_of(actions, everything=inverses))
    if not inverses:
        _assume(before, actions)
    after = before.copy()
    captured = tuple(
        _apply_one(cluster, index, action, after, capture=inverses)
        for index, action in enumerate(actions)
    )
    name = actor.name if actor is not None else change.author
    first = _first_actions(cluster.pk) if cluster.routing_version == 0 else []
    # The version is claimed first: a writer that loses the race for it has written nothing.
    version = versions.append(
        cluster.pk, cluster.routing_version, [*first, *actions], change.summary,
        actor=name, proposal=proposal,
    )  # fmt: skip
    after_commit("publish the routing", partial(publish_unpublished, cluster.pk))
    snapshot = proposal.snapshot_row_id if proposal is not None else change.snapshot
    writer = Writer(name, change.reason, version.version, change.summary, snapshot)
    write_rows(cluster, before, after, writer)
    if actor is not None:
        _record(actor, cluster, change)
    return Applied(version, captured if inverses else ())


def _record(actor: Actor, cluster: Cluster, change: TopologyChange) -> None:
    """Write the audit record of a change and announce it, in the caller's transaction."""
    if change.action:
        audit.record(
            actor, change.action, change.subject, cluster=cluster, reason=change.reason,
            before=change.before, after=change.after,
        )  # fmt: skip
        announce(cluster.pk, event("state", change.summary, pk=change.pk))


def _apply_one(
    cluster: Cluster, index: int, action: Action, draft: TableDraft, *, capture: bool
) -> tuple[Action, ...]:
    _require_nodes(cluster, index, action, draft)
    _require_edge(index, action, draft)
    try:
        inverse = action.inverse(draft) if capture else ()
        action.apply_to(draft)
    except InconsistentDelta as error:
        raise ActionRejected(
            "inconsistent", f"The topology does not allow this: {error}", index
        ) from None
    return inverse


def _require_nodes(cluster: Cluster, index: int, action: Action, draft: TableDraft) -> None:
    """Raise `ActionRejected` if the action refers to an unknown node, or removes a node in use."""
    if isinstance(action, SetNodeCount):
        used = sorted(
            query
            for query, route in draft.queries.items()
            if max((*route.owners(), *route.aggregators)) >= action.nodes
        )
        if used:
            message = f"{len(used)} queries use a node that would be removed: move them first"
            raise ActionRejected("node_in_use", message, index, {"queries": used})
        return
    for node in nodes_of(action):
        if not 0 <= node < draft.node_count:
            message = f"{cluster.slug} has {draft.node_count} nodes, and no node {node}"
            raise ActionRejected("no_such_node", message, index, {"node": node})


def _require_edge(index: int, action: Action, draft: TableDraft) -> None:
    """Raise `ActionRejected` if the action is about a stream or an edge that does not exist."""
    if isinstance(action, OF_STREAM) and action.stream not in draft.splits:
        message = f"There is no stream {action.stream}"
        raise ActionRejected("no_such_stream", message, index, {"stream": action.stream})
    if not isinstance(action, SetDropRule) or action.query == INPUT or action.rule is None:
        return
    route = draft.queries.get(action.query)
    if route is None or action.stream not in route.streams:
        message = f"Query {action.query} does not run, or does not read stream {action.stream}"
        raise ActionRejected(
            "no_such_edge", message, index, {"stream": action.stream, "query": action.query}
        )


def scope_of(actions: Sequence[Action], *, everything: bool) -> Scope:
    """Return what must be read to apply the actions; to invert them, everything they change."""
    queries: set[int] = set()
    streams: set[int] = set()
    edges: set[tuple[int, int]] = set()
    nodes, removed_from, ladder = False, None, False
    for action in actions:
        ladder = ladder or isinstance(action, SetLadder)
        if isinstance(action, SetDropRule):
            edges.add((action.stream, action.query))
            queries |= {action.query} - {INPUT}
            continue
        for subject in action.subjects():
            lifecycle = isinstance(action, AddQuery | RemoveQuery)
            if subject.kind == ObjectKind.QUERY and (everything or not lifecycle):
                queries.add(subject.id)
            elif subject.kind == ObjectKind.STREAM:
                streams.add(subject.id)
        if isinstance(action, RemoveStream):
            edges.add((action.stream, INPUT))
        nodes = nodes or isinstance(action, SetCapacity | SetNodeActive | SetNodeCount)
        if isinstance(action, SetNodeCount):
            removed_from = min(action.nodes, removed_from or action.nodes)
    return Scope(queries, streams, edges, nodes, removed_from, ladder)


def _assume(draft: TableDraft, actions: Sequence[Action]) -> None:
    """Add the routes of queries that are removed, unread: their rows are deleted whatever they are.

    The conditional updates of `store` find out if a query is not routed any more.
    """
    for action in actions:
        if isinstance(action, RemoveQuery):
            draft.queries.setdefault(action.query, Route(0, 0, (), ""))


def _first_actions(cluster_id: int) -> list[Action]:
    """Return the actions that declare the nodes, with which the first version starts."""
    table = declared_nodes(cluster_id)
    actions: list[Action] = [SetNodeCount(table.node_count), SetSplitCount(table.split_count)]
    if table.split_capacity:
        actions.append(SetSplitCapacity(table.split_capacity, table.split_emulated))
    for index, state in table.nodes.items():
        actions.append(SetCapacity(index, state.capacity, state.emulated))
        if not state.active:
            actions.append(SetNodeActive(index, active=False))
    return actions
