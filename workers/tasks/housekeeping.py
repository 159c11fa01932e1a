"""Housekeeping tasks."""

from celery import shared_task
from django.utils import timezone

from controlplane import watch
from controlplane.background import retention
from controlplane.integrations import attached_housekeeping, deliveries, idempotency
from controlplane.policies.exclusions import prune_exclusions
from controlplane.proposals import computation
from controlplane.results import window_retention
from controlplane.task_names import PRUNE, ROLL_UP
from controlplane.telemetry import roll_ups


@shared_task(name=ROLL_UP)
def roll_up() -> None:
    """Write the 10 s and 60 s samples."""
    roll_ups.roll_up(timezone.now())


@shared_task(name=PRUNE)
def prune() -> None:
    """Delete expired rows, and mark proposals of lost workers as failed."""
    now = timezone.now()
    roll_ups.prune(now)
    retention.prune_queries(now)
    window_retention.prune_windows(now)
    retention.prune_routing()
    retention.prune_sessions(now)
    attached_housekeeping.prune(now)
    idempotency.prune(now)
    deliveries.prune(now)
    prune_exclusions(now)
    watch.prune(now)
    computation.fail_lost(now)
