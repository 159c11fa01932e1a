"""Tasks of the planners."""

from celery import shared_task

from controlplane.proposals import computation
from controlplane.task_names import COMPUTE_PROPOSAL


@shared_task(name=COMPUTE_PROPOSAL)
def compute_proposal(proposal_id: int) -> None:
    """Compute a requested proposal; a repeated delivery does nothing."""
    computation.compute(proposal_id)
