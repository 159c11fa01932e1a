"""Tasks that keep the database small."""

from celery import shared_task
from django.utils import timezone

from controlplane.policies.exclusions import prune_exclusions
from controlplane.proposals import computation
from controlplane.services import (
    attached_upkeep,
    deliveries,
    idempotency,
    metrics,
    result_retention,
    retention,
    watching,
)
from controlplane.task_names import PRUNE, ROLL_UP


@shared_task(name=ROLL_UP)
def roll_up() -> None:
    """Write the 10 s and 60 s samples."""
    metrics.roll_up(timezone.now())


@shared_task(name=PRUNE)
def prune() -> None:
    """Delete what is kept no longer or has expired, and fail proposals of lost workers."""
    now = timezone.now()
    metrics.prune(now)
    retention.prune_queries(now)
    result_retention.prune_windows(now)
    retention.prune_routing()
    retention.prune_sessions(now)
    attached_upkeep.prune(now)
    idempotency.prune(now)
    deliveries.prune(now)
    prune_exclusions(now)
    watching.prune(now)
    computation.fail_lost(now)
