"""Lists of runs, one run by id, and experiments by name."""

from dataclasses import dataclass

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


def experiment_of(run: LabRun) -> Experiment | None:
    """Return the experiment of a run, None if this version of Weir does not have it."""
    try:
        return experiment(run.planner, run.experiment)
    except UnknownExperiment:
        return None
