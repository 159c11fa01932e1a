"""Lists of runs, one run by id, and experiments by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from algorithms.errors import UnknownExperiment
from algorithms.experiments import EXPERIMENTS, Experiment, experiment, experiments
from controlplane.errors import NotFound
from controlplane.models import LabRun
from controlplane.pagination.cursors import Place, Slice, slice_of
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, Page, one_of, page_of, whole

STATES = tuple(str(state) for state in LabRun.State.values)


@dataclass(frozen=True)
class LabFilters:
    """Filters of the list; "" is all."""

    planner: str = ""
    experiment: str = ""
    state: str = ""
    page: int = 1
    per_page: int = PER_PAGE

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "LabFilters":
        """Read planner, experiment, state, page, per_page of a query string."""
        return cls(
            planner=str(values.get("planner", "")).strip()[:30],
            experiment=str(values.get("experiment", "")).strip()[:60],
            state=one_of(values, "state", STATES),
            page=whole(values, "page", 1),
            per_page=whole(values, "per_page", PER_PAGE, MAX_PER_PAGE),
        )


def lab_page(filters: LabFilters) -> Page[LabRun]:
    """Return a page of runs without their tables, newest first."""
    return page_of(_filtered(filters), filters.page, filters.per_page, list)


def lab_slice(filters: LabFilters, place: Place) -> Slice[LabRun]:
    """Return the runs after a cursor, newest first. Raises `Invalid`."""
    return slice_of(_filtered(filters), ("-requested_at", "-pk"), place, list)


def _filtered(filters: LabFilters) -> QuerySet[LabRun]:
    wanted = {"planner": filters.planner, "experiment": filters.experiment, "state": filters.state}
    return LabRun.objects.filter(**{name: to for name, to in wanted.items() if to}).defer("table")


def run_by_id(pk: int) -> LabRun:
    """Return a run with its table; raises `NotFound`."""
    try:
        return LabRun.objects.get(pk=pk)
    except LabRun.DoesNotExist:
        raise NotFound("run", pk) from None


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
