"""Names and visibility of runs: who sees a run, and who may change it.

A run that only its owner sees is visible to admins, too; others get the response of a run that does
not exist.
"""

from django.db import transaction
from django.db.models import Q, QuerySet

from controlplane.access import audit
from controlplane.access.roles import ADMIN, Actor, require_operator
from controlplane.errors import Fields, Invalid, NotFound
from controlplane.models import LabRun

MAX_NAME = 100


def visible_runs(actor: Actor) -> QuerySet[LabRun]:
    """Return the runs that an actor sees."""
    if actor.may(ADMIN):
        return LabRun.objects.all()
    shared = Q(visibility=LabRun.Visibility.EVERYONE)
    return LabRun.objects.filter(shared | Q(requested_by=actor.name))


def require_owner(actor: Actor, run: LabRun) -> None:
    """Raise `Forbidden` for others than operators, and `NotFound` for a run of another owner."""
    require_operator(actor)
    if not is_visible(actor, run):
        raise NotFound("run", run.pk)


def is_visible(actor: Actor, run: LabRun) -> bool:
    """Return True if the actor sees the run."""
    everyone = run.visibility == LabRun.Visibility.EVERYONE
    return everyone or run.requested_by == actor.name or actor.may(ADMIN)


@transaction.atomic
def change(
    actor: Actor, run: LabRun, name: str | None = None, visibility: str | None = None
) -> LabRun:
    """Change the name or the visibility of a run.

    Raises `Forbidden`, `Invalid` under name or visibility. Only the owner of a run, or an admin,
    changes its visibility.
    """
    require_owner(actor, run)
    before = {"name": run.name, "visibility": run.visibility}
    after = before | {
        key: value
        for key, value in (("name", name), ("visibility", visibility))
        if value is not None
    }
    faults = checked_visibility(after["name"], after["visibility"])
    owns = run.requested_by == actor.name or actor.may(ADMIN)
    if after["visibility"] != before["visibility"] and not owns:
        faults["visibility"] = ["Only the owner of the run, or an admin, changes it"]
    if faults:
        raise Invalid(faults)
    LabRun.objects.filter(pk=run.pk).update(**after)
    run.name, run.visibility = after["name"], after["visibility"]
    audit.record(actor, "lab.change", str(run), before=before, after=after)
    return run


def checked_visibility(name: str, visibility: str) -> Fields:
    """Return the faults of a name and a visibility, by field."""
    faults: Fields = {}
    if len(name) > MAX_NAME:
        faults["name"] = [f"{len(name)} characters are too many, at most {MAX_NAME}"]
    if visibility not in LabRun.Visibility.values:
        faults["visibility"] = [f"Must be one of {', '.join(LabRun.Visibility.values)}"]
    return faults
