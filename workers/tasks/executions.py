"""Tasks of executions."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from controlplane.executions import progression, reconcile
from controlplane.proposals import ledger, staleness
from controlplane.task_names import (
    ADVANCE,
    RECONCILE_EXECUTIONS,
    REVIEW_PROPOSALS,
    UPDATE_LEDGER,
)


@shared_task(
    name=ADVANCE,
    # What these retries do not do, the beat's task requests again.
    autoretry_for=(OperationalError,),
    retry_backoff=1,
    retry_backoff_max=5,
    max_retries=3,
)
def advance(proposal_id: int) -> None:
    """Do what comes next for an approved proposal; asked twice, it does it once."""
    progression.advance(proposal_id)


@shared_task(name=RECONCILE_EXECUTIONS)
def reconcile_executions() -> None:
    """Ask for the advance of executions that a crash may have left."""
    reconcile.request_advances()


@shared_task(name=UPDATE_LEDGER)
def update_ledger() -> None:
    """Write what became of executions that have settled; the next beat writes what this did not."""
    ledger.write_entries(timezone.now())


@shared_task(name=REVIEW_PROPOSALS)
def review_proposals() -> None:
    """Recompute the effects of the proposals that wait for their execution."""
    staleness.review_waiting(timezone.now())
