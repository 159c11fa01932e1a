"""Tasks of the routing table."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from controlplane.background import reconcile
from controlplane.connections import redis_client
from controlplane.errors import Conflict
from controlplane.runtime.beats import beat
from controlplane.task_names import PLACE, RECONCILE_ROUTING
from controlplane.topology import placement


@shared_task(
    name=PLACE,
    # For a locked or unavailable database; the beat covers further failures.
    autoretry_for=(OperationalError, Conflict),
    retry_backoff=1,
    retry_backoff_max=10,
    max_retries=5,
)
def place(cluster_id: int) -> None:
    """Place all pending queries of a cluster and remove all ending ones."""
    placement.place_pending(cluster_id)


@shared_task(name=RECONCILE_ROUTING)
def reconcile_routing() -> None:
    """Reconcile the routing of every cluster, and record the heartbeat of beat and worker."""
    beat(redis_client(), "beat")
    reconcile.reconcile_all(timezone.now())
