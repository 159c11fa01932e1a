"""Decisions of administrators about incidents."""

from functools import partial

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require
from controlplane.clusters import changes
from controlplane.connections import redis_client
from controlplane.errors import Conflict, Invalid
from controlplane.events.after_commit import after_commit
from controlplane.events.publish import announce, event
from controlplane.health.losses.repair import ADOPT, STOP, restart_queries
from controlplane.models import Cluster, Incident
from controlplane.topology.publishing import republish
from controlplane.wire.routing.publication import latest_version

# Incarnations of a query that a data plane newer than the database may have started.
_RUNS_AHEAD = 1000


def decide(actor: Actor, incident: Incident, choice: str, reason: str = "") -> Incident:
    """Apply a decision about an incident and resolve it.

    `adopt-database`: the database is right; routing versions that it lacks are void, and every
    query is restarted. `stop`: the cluster is stopped, so that another database can be restored.
    Raises `Forbidden`, `Invalid` for an unknown choice, `Conflict` for a decided incident.
    """
    require(actor, ADMIN, incident.cluster)
    # Outside of the transaction: Redis is asked.
    adopts = choice == ADOPT
    newest = latest_version(redis_client(), incident.cluster.slug) if adopts else None
    return _decide(actor, incident, choice, reason, newest or 0)


@transaction.atomic
def _decide(actor: Actor, incident: Incident, choice: str, reason: str, newest: int) -> Incident:
    row = Incident.objects.select_for_update().get(pk=incident.pk)
    if row.state != Incident.State.UNDECIDED:
        raise Conflict("decided", f"Incident {row.pk} is decided: {row.decision or 'resolved'}")
    if choice not in row.choices:
        raise Invalid({"choice": [f"Must be one of {', '.join(row.choices)}"]})
    row.state, row.decision = Incident.State.RESOLVED, choice
    row.decided_by, row.decided_at = actor.name, timezone.now()
    if choice == ADOPT:
        newest = max(newest, int(row.facts["version"]))
        row.done = [*row.done, *_adopt_database(row.cluster, newest)]
    elif choice == STOP:
        changes.stop(actor, row.cluster, reason or f"incident {row.pk}")
        row.done = [*row.done, "Stopped the cluster"]
    row.save()
    audit.record(
        actor, "incident.decide", f"incident {row.pk}", cluster=row.cluster, reason=reason,
        after={"kind": row.kind, "choice": choice},
    )  # fmt: skip
    announce(row.cluster_id, event("alert", f"{actor.name} chose {choice}", pk=row.pk))
    return row


def _adopt_database(cluster: Cluster, known: int) -> list[str]:
    """Publish the database's routing as the newest version, and restart every query.

    The version is two above the newest of the data plane: without the delta in between no reader
    can follow the void versions, and every reader starts from the snapshot.
    """
    newest = max(known, cluster.routing_version)
    Cluster.objects.filter(pk=cluster.pk).update(routing_version=newest + 1)
    restarted = restart_queries(
        cluster, "the database was restored: versions are void", _RUNS_AHEAD
    )
    cluster.refresh_from_db()
    after_commit("publish the routing", partial(republish, cluster))
    return [
        f"Declared routing versions up to {newest} void; the newest is {cluster.routing_version}",
        f"Restarted {restarted} queries; windows open at the loss may be incomplete",
    ]
