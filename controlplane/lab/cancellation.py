"""Cancellation and deletion of runs."""

from django.db import transaction
from django.utils import timezone

from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.errors import Conflict
from controlplane.lab.requests import asked_for
from controlplane.models import LabRun

UNDER_WAY = (LabRun.State.QUEUED, LabRun.State.RUNNING)


@transaction.atomic
def cancel(actor: Actor, run: LabRun) -> LabRun:
    """Cancel a queued or running run; its worker stops at its next report of progress.

    Raises `Forbidden`, `Conflict` if it is over.
    """
    require_operator(actor)
    before = run.state
    changed = LabRun.objects.filter(pk=run.pk, state__in=UNDER_WAY).update(
        state=LabRun.State.CANCELLED, finished_at=timezone.now()
    )
    run.refresh_from_db()
    if changed != 1:
        raise Conflict("over", f"The run is {run.state} already")
    audit.record(
        actor, "lab.cancel", str(run), before={"state": before}, after={"state": run.state}
    )
    return run


@transaction.atomic
def delete(actor: Actor, run: LabRun) -> None:
    """Delete a run and its table; a running run stops. Raises `Forbidden`."""
    require_operator(actor)
    name = str(run)
    if LabRun.objects.filter(pk=run.pk).delete()[0]:
        audit.record(actor, "lab.delete", name, before=asked_for(run) | {"state": run.state})
