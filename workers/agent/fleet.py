"""The agent's access to the database: desired drivers, states, observations, restarts."""

from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta

from django.db import transaction
from django.utils import timezone

from controlplane.clusters.deletion import delete_keys
from controlplane.events.publish import announce, event
from controlplane.models import Cluster, ClusterHealth, DeletedCluster, DriverRestart
from workers.agent.causes import KEPT, WITHIN_S, Death
from workers.agent.driver import DriverSpec
from workers.agent.progress import Progress, Report

# The number of restarts kept per cluster.
_KEPT_RESTARTS = 1000
# The fields of a death that are columns of its row; its time is another type there.
_STORED = tuple(item.name for item in fields(Death) if item.name != "at_s")


def wanted_drivers() -> dict[str, DriverSpec | None]:
    """Return the desired driver of each cluster, None for a stopped cluster."""
    return {
        cluster.slug: spec_of(cluster) if cluster.desired == Cluster.Desired.RUNNING else None
        for cluster in Cluster.objects.all()
    }


def deleted_clusters() -> list[str]:
    """Return the slugs of deleted clusters whose checkpoints may exist, oldest first."""
    return list(DeletedCluster.objects.values_list("slug", flat=True))


def free_slug(slug: str) -> None:
    """Free the slug of a deleted cluster whose checkpoints are removed. Raises `RedisError`."""
    delete_keys(slug)
    DeletedCluster.objects.filter(slug=slug).delete()


def write_reports(reports: Mapping[str, Report]) -> None:
    """Store changed states and publish them to browsers."""
    for slug, report in reports.items():
        _write(slug, report)


@transaction.atomic
def _write(slug: str, report: Report) -> None:
    row = Cluster.objects.select_for_update().filter(slug=slug).first()
    answer = {"state": report.state, "state_detail": report.detail}
    if row is None or answer == {name: getattr(row, name) for name in answer}:
        return
    since = {"state_at": timezone.now()} if row.state != report.state else {}
    Cluster.objects.filter(pk=row.pk).update(**answer, **since)
    if row.state != report.state or not report.code:
        text = f"{report.state}: {report.detail}" if report.detail else report.state
        announce(row.pk, event("state", text, state=report.state))


def write_progress(slug: str, progress: Progress) -> None:
    """Store the newest observation of a cluster's data plane."""
    cluster = Cluster.objects.filter(slug=slug).first()
    seen, pace = progress.observed, progress.pace()
    if cluster is None or seen is None or seen.batch < 0:
        return
    # An earlier driver may have had another checkpoint.
    own = {"checkpoint": progress.checkpoint} if progress.finished else {}
    values = {
        **own,
        "observed_at": timezone.now(),
        "batch": seen.batch,
        "position": seen.end,
        "total": seen.total,
        "version": seen.version,
        "unread": seen.unread,
        "rate": pace.read if pace else None,
        "drained_s": pace.drained_s if pace else None,
        "phase": progress.beat.phase[:100] if progress.beat else "",
    }
    ClusterHealth.objects.update_or_create(cluster=cluster, defaults=values)


def recent_deaths(slug: str) -> list[Death]:
    """Return the deaths of a cluster's driver in the last hour, oldest first."""
    since = timezone.now() - timedelta(seconds=WITHIN_S)
    rows = DriverRestart.objects.filter(cluster__slug=slug, at__gte=since)[:KEPT]
    return [
        Death(row.at.timestamp(), **{name: getattr(row, name) for name in _STORED})
        for row in reversed(rows)
    ]


class Deaths:
    """Deaths that wait for the database, which may be unavailable when a driver dies."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[str, Death]] = deque(maxlen=_KEPT_RESTARTS)

    def add(self, slug: str, death: Death) -> None:
        """Queue a death; never raises."""
        self._waiting.append((slug, death))

    def flush(self) -> None:
        """Store waiting deaths in order; keep those that cannot be stored."""
        while self._waiting:
            record_death(*self._waiting[0])
            self._waiting.popleft()


@transaction.atomic
def record_death(slug: str, death: Death) -> None:
    """Store a death and notify browsers and webhooks, unless the cluster is deleted."""
    cluster = Cluster.objects.filter(slug=slug).first()
    if cluster is None:
        return
    values = {name: getattr(death, name) for name in _STORED}
    values |= {"detail": death.detail[:500], "uptime_s": round(death.uptime_s, 1)}
    DriverRestart.objects.create(
        cluster=cluster, at=datetime.fromtimestamp(death.at_s, UTC), **values
    )
    old = cluster.restarts.order_by("-at", "-id").values_list("pk", flat=True)[_KEPT_RESTARTS:]
    DriverRestart.objects.filter(pk__in=list(old)).delete()
    batch = "" if death.batch is None else f" at batch {death.batch}"
    announce(cluster.pk, event("alert", f"driver restarted{batch}: {death.detail}", state="failed"))


def spec_of(cluster: Cluster) -> DriverSpec:
    """Return the settings of a cluster's driver."""
    same = ("splits", "trigger_ms", "master", "log_url", "max_records", "max_batch_mb")
    return DriverSpec(
        cluster=cluster.slug,
        nodes=cluster.slots,
        partitions=cluster.partitions or 0,
        **{name: getattr(cluster, name) for name in same},
    )
