"""Tasks of the watch loops."""

from celery import shared_task
from django.db import OperationalError
from django.utils import timezone

from controlplane import watch as controlplane_watch
from controlplane.task_names import REVIEW_PROPOSAL, WATCH


@shared_task(name=WATCH)
def watch() -> None:
    """Run the watch loops of every cluster."""
    controlplane_watch.watch_all(timezone.now())


@shared_task(
    name=REVIEW_PROPOSAL,
    # After the last retry, the next watch cycle reviews the proposal.
    autoretry_for=(OperationalError,),
    retry_backoff=1,
    retry_backoff_max=5,
    max_retries=3,
)
def review_proposal(proposal_id: int) -> None:
    """Review a computed proposal; a repetition changes nothing."""
    controlplane_watch.review_proposal(proposal_id)
