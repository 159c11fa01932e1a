"""Reconciliation of executions: after a crash, their progression is queued again."""

from controlplane.models import Proposal
from controlplane.plans.proposal_states import State
from controlplane.policies.store import policy_of
from controlplane.task_names import ADVANCE, send_on_commit

# The interval of the beat's task.
EVERY_S = 2.0


def request_advances() -> int:
    """Queue the progression of every proposal that may have a due operation; return how many."""
    open_ = Proposal.objects.select_related("cluster").filter(
        state__in=(State.APPROVED, State.EXECUTING, State.ROLLING_BACK)
    )
    queued = 0
    for proposal in open_.defer(*Proposal.HEAVY).order_by("approved_at"):
        if proposal.state == State.APPROVED and not policy_of(proposal.cluster).starts:
            continue
        send_on_commit(ADVANCE, proposal.pk, expires_s=EVERY_S)
        queued += 1
    return queued
