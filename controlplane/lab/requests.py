"""Requests of runs of an experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from algorithms.errors import BadParameters
from algorithms.estimates import Estimate
from algorithms.lab.errors import UnknownExperiment
from algorithms.lab.experiments import Experiment, Repeated, experiment
from controlplane.access import audit
from controlplane.access.roles import Actor, require_operator
from controlplane.access.user_lock import lock_user
from controlplane.errors import Busy, Conflict, Fields, Invalid
from controlplane.events.task_names import RUN_LAB, send_on_commit
from controlplane.lab.engines import Sweep
from controlplane.lab.estimates import estimate_run
from controlplane.lab.sharing import checked_visibility, require_owner
from controlplane.lab.time_estimates import TimeEstimate, estimate_time
from controlplane.models import LabRun
from controlplane.models.cluster import valid_master

# Rows in the table of a run. The paper's largest figure at ten seeds has 650; a page draws a
# hundred times as many in seconds.
MAX_ROWS = 20_000
# Values of the swept parameter; the papers have 24 at most.
MAX_VALUES = 1_000
UNDER_WAY = (LabRun.State.QUEUED, LabRun.State.RUNNING)
# The least time after which a refused request may succeed (s).
_AGAIN_S = 10


@dataclass(frozen=True)
class RunOptions:
    """What a run has besides its points: a name, who sees it, and the Spark master.

    `master`: "" for the Lab's worker.
    """

    name: str = ""
    visibility: str = LabRun.Visibility.EVERYONE.value
    master: str = ""


@dataclass(frozen=True)
class Need:
    """The estimated memory of a run in bytes with the upper bound of its time, and its time."""

    bound: Estimate
    time: TimeEstimate

    def to_json(self) -> dict[str, Any]:
        """Return the values as the column `estimate` of a run keeps them."""
        return self.bound.to_json() | self.time.to_json()


@transaction.atomic
def request(
    actor: Actor,
    planner: str,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    values: Sequence[float] | None = None,
    series: Sequence[str] | None = None,
    options: RunOptions | None = None,
) -> LabRun:
    """Create a run; missing parameters have the experiment's defaults.

    Returns the waiting run if the user has requested the same already. Raises `Forbidden`,
    `Invalid` per parameter, or under experiment, values, series, name, visibility or master,
    `TooExpensive` beyond the limits of memory and time, and `Busy` too_many_runs.
    """
    require_operator(actor)
    options = options or RunOptions()
    sweep = _checked_sweep(planner, name, parameters, values, series, options)
    wanted = {
        "planner": planner,
        "experiment": name,
        "parameters": _fixed_parameters(sweep),
        "values": list(sweep.values),
        "series": list(sweep.series),
        "master": options.master,
    }
    need = _need_of(sweep)
    lock_user(actor)
    if equal := _equal_run(actor, wanted):
        return equal
    _require_room(actor)
    run = LabRun.objects.create(
        **wanted, name=options.name, visibility=options.visibility,
        estimate=need.to_json(), requested_by=actor.name, requested_at=timezone.now(),
    )  # fmt: skip
    after = requested_values(run) | {"visibility": run.visibility}
    audit.record(actor, "lab.request", str(run), after=after)
    send_on_commit(RUN_LAB, run.pk)
    return run


def _checked_sweep(
    planner: str,
    name: str,
    parameters: Mapping[str, Any] | None,
    values: Sequence[float] | None,
    series: Sequence[str] | None,
    options: RunOptions,
) -> Sweep:
    """Return the points of a request with the defaults of the experiment. Raises `Invalid`."""
    chosen = _experiment(planner, name)
    swept = sorted(set(chosen.values if values is None else values))
    compared = chosen.series if series is None else tuple(series)
    checked, compared = _checked(chosen, dict(parameters or {}), swept, compared)
    _check_options(options)
    return Sweep(chosen, checked, tuple(swept), compared, options.master)


def _fixed_parameters(sweep: Sweep) -> dict[str, Any]:
    """Return the parameters without the swept one."""
    kept = sweep.parameters.to_mapping()
    return {name: value for name, value in kept.items() if name != sweep.experiment.x.name}


def _need_of(sweep: Sweep) -> Need:
    """Return the estimate of a sweep. Raises `TooExpensive` beyond the limits."""
    chosen = sweep.experiment
    bound = estimate_run(chosen, sweep.parameters, sweep.values, sweep.series)
    return Need(bound, estimate_time(chosen.planner, chosen.name, sweep.master, bound))


def _equal_run(actor: Actor, wanted: Mapping[str, Any]) -> LabRun | None:
    """Return the waiting run of the same request of the same user, None without one."""
    queued = LabRun.objects.filter(requested_by=actor.name, state=LabRun.State.QUEUED)
    same = queued.filter(planner=wanted["planner"], experiment=wanted["experiment"])
    return next((run for run in same if requested_values(run) == wanted), None)


def _require_room(actor: Actor) -> None:
    """Raise `Busy` if the user has too many runs that wait or run."""
    count = LabRun.objects.filter(requested_by=actor.name, state__in=UNDER_WAY).count()
    limit = settings.MAX_LAB_RUNS_PER_USER
    if count >= limit:
        message = (
            f"You have {count} runs that wait or run; at most {limit} are allowed. Wait until one "
            f"has ended, or cancel one"
        )
        raise Busy("too_many_runs", message, _AGAIN_S, {"count": count, "limit": limit})


def estimate(
    planner: str,
    name: str,
    parameters: Mapping[str, Any] | None = None,
    values: Sequence[float] | None = None,
    series: Sequence[str] | None = None,
    master: str = "",
) -> Need:
    """Return the estimate of a run without requesting it. Raises as `request`."""
    options = RunOptions(master=master)
    return _need_of(_checked_sweep(planner, name, parameters, values, series, options))


def repeat(actor: Actor, run: LabRun) -> LabRun:
    """Create another run with the same parameters, name and visibility. Raises as `request`."""
    options = RunOptions(run.name, run.visibility, run.master)
    return request(
        actor, run.planner, run.experiment, run.parameters, run.values, run.series, options
    )


def _check_options(options: RunOptions) -> None:
    """Raise `Invalid` for a wrong name, visibility or master."""
    faults = checked_visibility(options.name, options.visibility)
    if options.master:
        try:
            valid_master(options.master)
        except ValidationError as wrong:
            faults["master"] = list(wrong.messages)
    if faults:
        raise Invalid(faults)


def requested_values(run: LabRun) -> dict[str, Any]:
    """Return the requested parameters for the audit log."""
    names = ("planner", "experiment", "parameters", "values", "series", "master")
    return {name: getattr(run, name) for name in names}


def _experiment(planner: str, name: str) -> Experiment:
    try:
        return experiment(planner, name)
    except UnknownExperiment as unknown:
        raise Invalid({"experiment": [_sentence(str(unknown))]}) from None


def _checked(
    chosen: Experiment, given: dict[str, Any], values: Sequence[float], series: Sequence[str]
) -> tuple[Repeated, tuple[str, ...]]:
    """Return parameters and series, or raise `Invalid` with all that is wrong with any."""
    faults: Fields = {}
    if given.pop(chosen.x.name, None) is not None:
        faults[chosen.x.name] = ["Is swept: give its values instead"]
    checked, compared = chosen.parameters(), chosen.series
    try:
        checked = chosen.parameters.from_mapping(given)
    except BadParameters as bad:
        faults |= _describe(bad)
    try:
        compared = chosen.checked_series(series)
    except BadParameters as bad:
        faults |= _describe(bad)
    try:
        chosen.points(checked, values)
    except BadParameters as bad:
        faults |= _describe(bad)
    rows = len(values) * len(compared) * checked.seeds
    if not faults and rows > MAX_ROWS:
        why = f"{rows:,} rows are too many: values times series times seeds, at most {MAX_ROWS:,}"
        faults["values"] = [why]
    if len(values) > MAX_VALUES:
        faults["values"] = [f"{len(values):,} values are too many, at most {MAX_VALUES:,}"]
    if faults:
        raise Invalid(faults)
    return checked, compared


def _describe(bad: BadParameters) -> Fields:
    return {name: [_sentence(text) for text in texts] for name, texts in bad.fields.items()}


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


@transaction.atomic
def cancel(actor: Actor, run: LabRun) -> LabRun:
    """Cancel a queued or running run; its worker ends the computation within a second.

    Raises `Forbidden`, `Conflict` if it is over.
    """
    require_owner(actor, run)
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
    require_owner(actor, run)
    name = str(run)
    if LabRun.objects.filter(pk=run.pk).delete()[0]:
        audit.record(actor, "lab.delete", name, before=requested_values(run) | {"state": run.state})
