"""Tasks of executions."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from controlplane.executions import progression
from controlplane.proposals import ledger, staleness
from controlplane.task_names import (
    ADVANCE,
    RECONCILE_EXECUTIONS,
    REVIEW_PROPOSALS,
    UPDATE_LEDGER,
)


@shared_task(
    name=ADVANCE,
    # After the last retry, the periodic task queues it again.
    autoretry_for=(OperationalError,),
    retry_backoff=1,
    retry_backoff_max=5,
    max_retries=3,
)
def advance(proposal_id: int) -> None:
    """Advance the execution of an approved proposal; a repetition changes nothing."""
    progression.advance(proposal_id)


@shared_task(name=RECONCILE_EXECUTIONS)
def reconcile_executions() -> None:
    """Queue the progression of executions that a crash may have interrupted."""
    progression.request_advances()


@shared_task(name=UPDATE_LEDGER)
def update_ledger() -> None:
    """Write ledger entries of settled executions."""
    ledger.write_entries(timezone.now())


@shared_task(name=REVIEW_PROPOSALS)
def review_proposals() -> None:
    """Recompute the effects of waiting proposals."""
    staleness.review_waiting(timezone.now())
