"""Lists of runs, one run by id, and experiments by name."""

from dataclasses import dataclass

from django.db.models import Count, Max
from django.utils import timezone

from algorithms.lab.errors import UnknownExperiment
from algorithms.lab.experiments import EXPERIMENTS, Experiment, experiment, experiments
from controlplane.access.roles import Actor
from controlplane.errors import NotFound
from controlplane.lab.sharing import visible_runs
from controlplane.models import LabRun
from controlplane.pagination.listing import Filters, Listing, choice_filter, text_filter
from controlplane.pagination.lookup import row_by

# The runs that a page offers for a comparison.
MAX_OTHERS = 50
STATES = tuple(str(state) for state in LabRun.State.values)


@dataclass(frozen=True)
class LabFilters(Filters):
    """Filters of the list; "" is all. `q`: words of the name."""

    planner: str = text_filter("planner", 30)
    experiment: str = text_filter("experiment", 60)
    state: str = choice_filter("state", lambda: STATES)
    q: str = text_filter("q", 100)


def runs_listing(filters: LabFilters, actor: Actor) -> Listing[LabRun, LabRun]:
    """Return the runs that an actor sees without their tables, newest first."""
    wanted = {"planner": filters.planner, "experiment": filters.experiment, "state": filters.state}
    wanted = {name: to for name, to in wanted.items() if to}
    runs = visible_runs(actor).filter(**wanted).defer("table")
    for word in filters.q.split():
        runs = runs.filter(name__icontains=word)
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
        seconds = float(run.estimate.get("expected_s") or run.estimate.get("seconds", 0.0))
        if run.state == LabRun.State.RUNNING:
            places[run.pk] = QueuePlace(run.pk, 0, 0.0, seconds)
            passed = (now - (run.started_at or now)).total_seconds()
            start_s += max(0.0, seconds - passed)
            continue
        waiting = sum(place.position > 0 for place in places.values())
        places[run.pk] = QueuePlace(run.pk, waiting + 1, round(start_s, 1), seconds)
        start_s += seconds
    return places


def run_by_id(pk: int, actor: Actor) -> LabRun:
    """Return a run with its table; raises `NotFound`, also for one that the actor may not see."""
    return row_by(visible_runs(actor), "run", pk=pk)


def newest_done(actor: Actor) -> dict[tuple[str, str], LabRun]:
    """Return the newest finished run of each experiment that an actor sees, without its table.

    By planner and name of the experiment.
    """
    done = visible_runs(actor).filter(state=LabRun.State.DONE)
    newest = done.values("planner", "experiment").annotate(newest=Max("pk")).order_by()
    rows = LabRun.objects.filter(pk__in=[row["newest"] for row in newest]).defer("table")
    return {(run.planner, run.experiment): run for run in rows}


def run_counts(actor: Actor) -> dict[tuple[str, str], int]:
    """Return the number of runs of each experiment that an actor sees, by planner and name."""
    counted = visible_runs(actor).values("planner", "experiment").annotate(runs=Count("pk"))
    return {(row["planner"], row["experiment"]): row["runs"] for row in counted.order_by()}


def comparable_runs(run: LabRun, actor: Actor) -> list[LabRun]:
    """Return the newest other runs of the same experiment that have a table, without it."""
    same = visible_runs(actor).filter(planner=run.planner, experiment=run.experiment)
    done = same.filter(state=LabRun.State.DONE).exclude(pk=run.pk).defer("table")
    return list(done.order_by("-requested_at", "-pk")[:MAX_OTHERS])


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
