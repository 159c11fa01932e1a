"""Removal of what a description of a cluster does not name, through the services of each part."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from controlplane.access.roles import Actor
from controlplane.catalog.queries import query_by_name
from controlplane.cluster_spec.document import ClusterDescription
from controlplane.models import Blackout, Cluster
from controlplane.pagination.chunks import chunks
from controlplane.planners.shedding.arming import disarm
from controlplane.policies.blackouts import remove_blackout
from controlplane.policies.exclusions import live_exclusions, remove_exclusion
from controlplane.sinks import service as sinks
from controlplane.topology import drop_rules, placement, queries, streams

REASON = "not named by the description"


def prune(
    actor: Actor,
    cluster: Cluster,
    described: ClusterDescription,
    present: ClusterDescription,
    reason: str,
    now: datetime,
) -> None:
    """End or remove the parts that exist but are not described, in the caller's transaction.

    Nodes go by the number of slots, and a cluster is never removed. Queries end before the streams
    that they read are removed; a sink and a drop rule of a query end with it. Raises as the
    services do.
    """
    reason = reason or REASON
    if described.ladder is None and present.ladder is not None:
        disarm(actor, cluster, reason)
    ended = {row.name for row in present.queries} - {row.name for row in described.queries}
    edges = {row.edge for row in described.drops}
    by_name = {stream.name: stream for stream in cluster.streams.select_related("cluster")}
    for row in present.drops:
        if row.edge not in edges and row.query not in ended:
            drop_rules.lift(actor, by_name[row.stream], row.query, reason)
    _prune_exceptions(actor, cluster, described, reason, now)
    kept = {(row.query, row.name) for row in described.sinks}
    for sink in present.sinks:
        if (sink.query, sink.name) not in kept and sink.query not in ended:
            sinks.remove(actor, sinks.sink_of(query_by_name(cluster, sink.query), sink.name))
    _end(actor, cluster, ended, reason)
    names = {row.name for row in described.streams}
    for name, stream in by_name.items():
        if name not in names:
            streams.delete(actor, stream, name, reason)


def _prune_exceptions(
    actor: Actor, cluster: Cluster, described: ClusterDescription, reason: str, now: datetime
) -> None:
    wanted = Counter(row.period for row in described.blackouts)
    for row in Blackout.objects.filter(cluster=cluster).exclude(cron="", ends_at__lte=now):
        period = " ".join(row.cron.split()), row.minutes, row.starts_at, row.ends_at
        if wanted[period]:
            wanted[period] -= 1
        else:
            remove_blackout(actor, cluster, row.pk, reason)
    about = {row.about for row in described.exclusions}
    for exclusion in live_exclusions(cluster, now):
        if (exclusion.kind, exclusion.subject) not in about:
            remove_exclusion(actor, cluster, exclusion.pk, reason)


def _end(actor: Actor, cluster: Cluster, names: Collection[str], reason: str) -> None:
    for chunk in chunks(sorted(names), queries.MAX_BULK):
        queries.end(actor, cluster, chunk, reason)
    if names:
        # They leave the routing table now: their streams may be removed in this transaction.
        placement.place_pending(cluster.pk)
