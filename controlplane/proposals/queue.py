"""The queue of proposals that workers compute: order, limits, and equal requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.access.user_lock import lock_user
from controlplane.errors import Busy
from controlplane.models import Cluster, Proposal
from controlplane.proposals.claims import claimed, waiting

# The least time after which a refused request may succeed.
_AGAIN_S: Final = 5


@dataclass(frozen=True)
class QueuedProposal:
    """A proposal in the queue of all clusters.

    `position`: 0 while it is computed, else its place among those that wait, from 1.
    `starts_in_s`: the estimated time until it is computed at the latest, 0 while it is computed.
    """

    id: int
    position: int
    starts_in_s: float
    planner: str
    algorithm: str
    requested_by: str
    requested_at: datetime
    started_at: datetime | None
    progress: float
    estimated_s: float


def computing_queue(cluster: Cluster) -> list[QueuedProposal]:
    """Return a cluster's proposals that are computed or wait, in order; others count in between."""
    columns = [
        "pk", "cluster_id", "planner", "algorithm", "requested_by", "requested_at", "started_at",
        "progress", "estimate",
    ]  # fmt: skip
    running = list(claimed().only(*columns))
    rows = list(waiting().only(*columns))
    now = timezone.now()
    free_at = sorted(_remaining_s(row, now) for row in running)
    free_at += [0.0] * max(0, settings.COMPUTING_SLOTS - len(free_at))
    entries = [_entry(row, 0, 0.0) for row in running]
    for place, row in enumerate(rows, 1):
        start_s = free_at.pop(0)
        entries.append(_entry(row, place, start_s))
        free_at = sorted([*free_at, start_s + estimated_s(row)])
    own = {row.pk for row in (*running, *rows) if row.cluster_id == cluster.pk}
    return [entry for entry in entries if entry.id in own]


def estimated_s(row: Proposal) -> float:
    """Return the estimated seconds of a computation, 0 without an estimate."""
    return float(row.estimate.get("seconds", 0.0))


def require_room(actor: Actor, cluster: Cluster, count: int = 1) -> None:
    """Raise `Busy` if a user or a cluster has too many computations for `count` more.

    A comparison is one request of its user. Call it after `lock_requests`, in its transaction.
    """
    unfinished = Proposal.objects.filter(state=Proposal.State.COMPUTING)
    of_user = unfinished.filter(requested_by=actor.name, origin=Proposal.Origin.PERSON)
    single = of_user.filter(comparison=None).count()
    requested = single + of_user.exclude(comparison=None).values("comparison").distinct().count()
    if requested >= settings.MAX_REQUESTS_PER_USER:
        raise _busy("too_many_requests", "You have", requested, settings.MAX_REQUESTS_PER_USER)
    computed = unfinished.filter(cluster=cluster).count()
    limit = settings.MAX_COMPUTATIONS_PER_CLUSTER
    if computed + count > limit:
        raise _busy("too_many_computations", "The cluster has", computed, limit)


def lock_requests(actor: Actor, cluster: Cluster) -> None:
    """Lock the rows of the user and of the cluster until the end of the transaction.

    So concurrent requests of a user on several clusters, and of several users on a cluster, count
    each other.
    """
    lock_user(actor)
    rows = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk)
    rows.values_list("pk").first()


def equal_request(actor: Actor, values: Mapping[str, Any]) -> Proposal | None:
    """Return the waiting proposal of the same request of the same user, None without one.

    A proposal that is computed already has an older snapshot, so it is another.
    """
    rows = waiting().filter(Q(comparison=None), requested_by=actor.name)
    same = rows.filter(
        **{name: values[name] for name in ("cluster", "planner", "algorithm", "base")}
    )
    wanted = values["parameters"], values["aims"]
    return next((row for row in same if (row.parameters, row.aims) == wanted), None)


def _busy(code: str, whose: str, count: int, limit: int) -> Busy:
    now = timezone.now()
    again_s = max(_AGAIN_S, round(min((_remaining_s(row, now) for row in claimed()), default=0.0)))
    message = (
        f"{whose} {count} computations that wait or run; at most {limit} are allowed. Wait until "
        f"one has ended, or cancel one"
    )
    return Busy(code, message, again_s, {"count": count, "limit": limit})


def _entry(row: Proposal, position: int, start_s: float) -> QueuedProposal:
    return QueuedProposal(
        row.pk, position, round(start_s, 1), row.planner, row.algorithm, row.requested_by,
        row.requested_at, row.started_at, row.progress, estimated_s(row),
    )  # fmt: skip


def _remaining_s(row: Proposal, now: datetime) -> float:
    passed = (now - (row.started_at or now)).total_seconds()
    return max(0.0, estimated_s(row) - passed)
