"""Lists of runs, one run by id, and experiments by name."""

from dataclasses import dataclass

from django.utils import timezone

from algorithms.errors import UnknownExperiment
from algorithms.experiments import EXPERIMENTS, Experiment, experiment, experiments
from controlplane.errors import NotFound
from controlplane.models import LabRun
from controlplane.pagination.listing import Filters, Listing, choice_filter, text_filter
from controlplane.pagination.lookup import row_by

STATES = tuple(str(state) for state in LabRun.State.values)


@dataclass(frozen=True)
class LabFilters(Filters):
    """Filters of the list; "" is all."""

    planner: str = text_filter("planner", 30)
    experiment: str = text_filter("experiment", 60)
    state: str = choice_filter("state", lambda: STATES)


def runs_listing(filters: LabFilters) -> Listing[LabRun, LabRun]:
    """Return the runs without their tables, newest first."""
    wanted = {"planner": filters.planner, "experiment": filters.experiment, "state": filters.state}
    runs = LabRun.objects.filter(**{name: to for name, to in wanted.items() if to}).defer("table")
    return Listing(runs, ("-requested_at", "-pk"), list, filters)


@dataclass(frozen=True)
class QueuePlace:
    """The place of a run in the queue of all runs.

    `position`: 0 while it is executed, else its place among those that wait, from 1.
    `starts_in_s`: the estimated time until it is executed at the latest.
    """

    id: int
    position: int
    starts_in_s: float
    estimated_s: float


def queue_places() -> dict[int, QueuePlace]:
    """Return the places of the runs that are queued or running, by id."""
    now, start_s = timezone.now(), 0.0
    open_runs = LabRun.objects.filter(state__in=(LabRun.State.QUEUED, LabRun.State.RUNNING))
    rows = open_runs.only("state", "started_at", "estimate").order_by("requested_at", "pk")
    places: dict[int, QueuePlace] = {}
    for run in sorted(rows, key=lambda row: row.state != LabRun.State.RUNNING):
        seconds = float(run.estimate.get("seconds", 0.0))
        if run.state == LabRun.State.RUNNING:
            places[run.pk] = QueuePlace(run.pk, 0, 0.0, seconds)
            passed = (now - (run.started_at or now)).total_seconds()
            start_s += max(0.0, seconds - passed)
            continue
        waiting = sum(place.position > 0 for place in places.values())
        places[run.pk] = QueuePlace(run.pk, waiting + 1, round(start_s, 1), seconds)
        start_s += seconds
    return places


def run_by_id(pk: int) -> LabRun:
    """Return a run with its table; raises `NotFound`."""
    return row_by(LabRun.objects, "run", pk=pk)


def all_experiments() -> dict[str, tuple[Experiment, ...]]:
    """Return the experiments by planner."""
    return {planner: experiments(planner) for planner in EXPERIMENTS}


def experiment_by_name(planner: str, name: str) -> Experiment:
    """Return one experiment; raises `NotFound`."""
    try:
        return experiment(planner, name)
    except UnknownExperiment as unknown:
        raise NotFound("experiment", f"{unknown.planner}/{unknown.name}") from None


def planner_of(experiment: Experiment) -> str:
    """Return the name of the planner that has an experiment, "" for none."""
    planners = all_experiments().items()
    return next((name for name, rows in planners if any(row is experiment for row in rows)), "")


def experiment_of(run: LabRun) -> Experiment | None:
    """Return the experiment of a run, None if this version of Weir does not have it."""
    try:
        return experiment(run.planner, run.experiment)
    except UnknownExperiment:
        return None
