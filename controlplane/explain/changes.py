"""What changed at a node before a moment: plans, placements, capacities, drops, rates, restarts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.units import ValueUnit
from controlplane.models import (
    AuditEntry,
    Cluster,
    DriverRestart,
    Redirection,
    RoutingVersion,
    Step,
)

# Routing versions that are read, the newest ones.
_VERSIONS: Final = 300
# Rows of an explanation.
LISTED: Final = 8
# Placements that follow so closely are one row.
_TOGETHER: Final = timedelta(minutes=5)
# An audit entry and its routing version are written in one transaction.
_WRITTEN: Final = timedelta(seconds=5)
_OPS: Final = {
    "set_capacity": ChangeKind.CAPACITY,
    "set_node_active": ChangeKind.ACTIVITY,
    "set_node_count": ChangeKind.NODES,
    "set_drop_rule": ChangeKind.DROP_RULE,
    "set_ladder": ChangeKind.LADDER,
    "set_key_grouping": ChangeKind.KEY_GROUPING,
}
_OF_NODE: Final = (ChangeKind.CAPACITY, ChangeKind.ACTIVITY)
# The actions of audit entries that have the replaced value.
_AUDITED: Final = {
    ChangeKind.CAPACITY: ("node.change", "nodes.change"),
    ChangeKind.DROP_RULE: ("drop.set", "drop.lift"),
}


def newest_versions(cluster: Cluster, start: datetime, stop: datetime) -> list[RoutingVersion]:
    """Return the newest routing versions after `start` until `stop`, newest first."""
    rows = RoutingVersion.objects.filter(
        cluster=cluster, created_at__gt=start, created_at__lte=stop
    )
    # In the order of the index, so that only these are read.
    return list(rows.order_by("-created_at", "-version").defer("reason")[:_VERSIONS])


def changes_of_node(
    cluster: Cluster, node: int, start: datetime, stop: datetime, streams: Iterable[int] = (),
    versions: Sequence[RoutingVersion] | None = None,
) -> list[NearbyChange]:  # fmt: skip
    """Return the changes of a node in a time range, oldest first: routing, restarts, redirections.

    `streams`: those that the node reads; redirections and drop rules of others are left out.
    `versions`: the newest ones until `stop`, if they were read before, from `start` or earlier.
    """
    read = frozenset(streams)
    changes: list[NearbyChange] = []
    newest = newest_versions(cluster, start, stop) if versions is None else versions
    within = [row for row in newest if row.created_at > start]
    numbers = _step_numbers([row.pk for row in within if row.proposal_id is not None])
    for row in within:
        changes += _of_version(row, node, read, numbers.get(row.pk))
    changes += _redirections(cluster, read, start, stop)
    changes += [
        NearbyChange(ChangeKind.RESTART, row.at, reason=row.cause, after=row.uptime_s)
        for row in DriverRestart.objects.filter(cluster=cluster, at__gt=start, at__lte=stop)
    ]
    changes.sort(key=lambda change: change.time)
    return _with_former_values(cluster, node, _together(changes))


def changes_of_cluster(versions: Iterable[RoutingVersion]) -> list[NearbyChange]:
    """Return the changes of routing versions at any node, and of any stream."""
    return [change for row in versions for change in _of_version(row)]


def capacities_set(versions: Iterable[RoutingVersion]) -> frozenset[int]:
    """Return the indexes of the nodes whose capacity routing versions set."""
    return frozenset(
        op["node"] for row in versions for op in row.ops if op.get("op") == "set_capacity"
    )


def _step_numbers(versions: Sequence[int]) -> dict[int, int]:
    """Return the number of the step of an execution by the id of its routing version."""
    steps = Step.objects.filter(version__in=versions)
    return {pk: number for pk, number in steps.values_list("version_id", "number") if pk}


def _of_version(
    row: RoutingVersion, node: int | None = None, streams: frozenset[int] = frozenset(),
    step: int | None = None,
) -> list[NearbyChange]:  # fmt: skip
    """Return the changes of a routing version at a node or of its streams; by default all."""
    arrived, others = set(), []
    for op in row.ops:
        targets, kind = _targets(op), _OPS.get(op.get("op", ""))
        if node in targets or (node is None and targets):
            arrived.add(op["query"])
        if kind is None or (node is not None and kind in _OF_NODE and op.get("node") != node):
            continue
        if node is not None and kind is ChangeKind.DROP_RULE and op.get("stream") not in streams:
            continue
        others.append((kind, op))
    common: dict[str, Any] = {
        "time": row.created_at, "version": row.version, "proposal": row.proposal_id, "step": step,
        "actor": row.actor,
    }  # fmt: skip
    changes = [_other(kind, op, common) for kind, op in others if row.proposal_id is None]
    placed = dict.fromkeys(arrived, row.created_at)
    if row.proposal_id is not None and (arrived or others):
        changes.append(NearbyChange(ChangeKind.PLAN, arrived=len(arrived), placed=placed, **common))
    elif arrived:
        changes.append(
            NearbyChange(ChangeKind.PLACEMENT, arrived=len(arrived), placed=placed, **common)
        )
    return changes


def _targets(op: Mapping[str, Any]) -> set[int]:
    """Return the nodes that get tasks by an action, as its JSON has them."""
    match op.get("op"):
        case "move_tasks":
            return {target for target, _, _ in op["moves"]}
        case "add_query" | "restart_query":
            ranges = op.get("task_ranges") or ()
            return {owner for owner, _, _ in ranges} or {op["node"]}
        case "set_task_count":
            return {owner for owner, _, _ in op.get("added") or ()}
    return set()


def _other(kind: ChangeKind, op: Mapping[str, Any], common: Mapping[str, Any]) -> NearbyChange:
    if kind is ChangeKind.CAPACITY:
        return NearbyChange(kind, after=op.get("capacity"), unit=ValueUnit.DELIVERY_RATE, **common)
    if kind is ChangeKind.ACTIVITY:
        return NearbyChange(
            kind, after=float(bool(op.get("active"))), unit=ValueUnit.COUNT, **common
        )
    if kind is ChangeKind.NODES:
        return NearbyChange(kind, after=op.get("nodes"), unit=ValueUnit.COUNT, **common)
    if kind is ChangeKind.DROP_RULE and not op.get("query"):
        share = _dropped_share(op.get("rule"))
        return NearbyChange(kind, id=op.get("stream"), after=share, unit=ValueUnit.SHARE, **common)
    return NearbyChange(kind, id=op.get("stream") or op.get("query"), **common)


def _dropped_share(rule: Mapping[str, Any] | None) -> float:
    """Return the share that a drop rule drops after its last step, 0 without one."""
    return float(rule["steps"][-1][1]) if rule and rule.get("steps") else 0.0


def _redirections(
    cluster: Cluster, streams: frozenset[int], start: datetime, stop: datetime
) -> list[NearbyChange]:
    # By their time: a node may read ten thousand streams.
    rows = Redirection.objects.filter(stream__cluster=cluster, at__gt=start, at__lte=stop)
    return [
        NearbyChange(
            ChangeKind.REDIRECTION, row.at, row.stream.name, row.stream_id, version=row.version,
            before=row.source, after=row.target, unit=ValueUnit.COUNT, actor=row.actor,
            reason=row.reason,
        )
        for row in rows.select_related("stream") if row.stream_id in streams
    ]  # fmt: skip


def _together(changes: Sequence[NearbyChange]) -> list[NearbyChange]:
    """Return the changes with placements that follow closely, and equal redirections, as one."""
    result: list[NearbyChange] = []
    for change in changes:
        last = result[-1] if result else None
        alike = last is not None and last.kind is change.kind is ChangeKind.PLACEMENT
        if alike and last is not None and change.time - last.time <= _TOGETHER:
            result[-1] = replace(
                last, arrived=last.arrived + change.arrived, count=last.count + 1,
                until=change.time, placed={**last.placed, **change.placed},
            )  # fmt: skip
        elif last is not None and _is_same_redirection(last, change):
            result[-1] = replace(last, count=last.count + 1)
        else:
            result.append(change)
    return result


def _is_same_redirection(last: NearbyChange, change: NearbyChange) -> bool:
    ends = (change.before, change.after, change.version)
    is_redirection = last.kind is change.kind is ChangeKind.REDIRECTION
    return is_redirection and (last.before, last.after, last.version) == ends


def _with_former_values(
    cluster: Cluster, node: int, changes: Sequence[NearbyChange]
) -> list[NearbyChange]:
    """Return the changes with the capacity or dropped share that each replaced, by the audit log.

    A capacity without an entry replaced that of the change before.
    """
    audited = [change for change in changes if change.kind in _AUDITED]
    if not audited:
        return list(changes)
    name = cluster.nodes.filter(index=node).values_list("name", flat=True).first()
    entries = AuditEntry.objects.filter(
        cluster=cluster, action__in=[action for names in _AUDITED.values() for action in names],
        at__gte=audited[0].time - _WRITTEN, at__lte=audited[-1].time + _WRITTEN,
    )  # fmt: skip
    rows, result = list(entries), list[NearbyChange]()
    last: float | None = None
    for change in changes:
        actions = _AUDITED.get(change.kind, ())
        near = [r for r in rows if r.action in actions and abs(r.at - change.time) < _WRITTEN]
        if change.kind is ChangeKind.CAPACITY:
            known = (_former_capacity(row, f"{cluster.slug}/{name}", str(node)) for row in near)
            before = next((value for value in known if value is not None), last)
            result.append(replace(change, before=before))
            last = change.after
        elif change.kind is ChangeKind.DROP_RULE and change.after is not None:
            shares = ((_dropped_share(row.before), _dropped_share(row.after)) for row in near)
            before = next((before for before, after in shares if after == change.after), None)
            result.append(replace(change, before=before))
        else:
            result.append(change)
    return result


def _former_capacity(row: AuditEntry, subject: str, index: str) -> float | None:
    """Return the capacity of a node before an entry about it or about several nodes."""
    part = row.before if row.object == subject else row.before.get(index, {})
    known = part.get("capacity") if isinstance(part, dict) else None
    return None if known is None else float(known)
