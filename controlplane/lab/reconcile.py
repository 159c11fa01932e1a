"""Reconciliation of runs whose worker or message was lost."""

from datetime import datetime, timedelta

from controlplane.models import LabRun
from controlplane.task_names import RUN_LAB, send_on_commit

# Experiments report about once a second; a compiled step over a million queries, or a solver, may
# take a minute or two.
LOST_AFTER = timedelta(minutes=5)
# A run that has ended so many workers would end the next one, too.
MAX_ATTEMPTS = 3
# A message takes milliseconds: the message of a run that waits longer, with no other, is lost.
MESSAGE_LOST_AFTER = timedelta(seconds=10)
# Until the next message, so that messages do not accumulate without a worker.
MESSAGE_EXPIRES_S = 15.0


def requeue_lost(now: datetime) -> None:
    """Queue or fail the runs of lost workers, then send a task if runs are queued."""
    _give_up_lost(now)
    if LabRun.objects.filter(state=LabRun.State.RUNNING).exists():
        return
    waiting = LabRun.objects.filter(
        state=LabRun.State.QUEUED, requested_at__lt=now - MESSAGE_LOST_AFTER
    )
    oldest = waiting.order_by("requested_at", "pk").values_list("pk", flat=True).first()
    if oldest is not None:
        send_on_commit(RUN_LAB, oldest, expires_s=MESSAGE_EXPIRES_S)


def _give_up_lost(now: datetime) -> None:
    lost = LabRun.objects.filter(state=LabRun.State.RUNNING, beat_at__lt=now - LOST_AFTER)
    lost.filter(attempts__lt=MAX_ATTEMPTS).update(state=LabRun.State.QUEUED, progress=0.0)
    lost.filter(attempts__gte=MAX_ATTEMPTS).update(
        state=LabRun.State.FAILED, finished_at=now, error="The worker was lost; run it again"
    )
