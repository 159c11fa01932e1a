"""Adapter of the admission planner: redirections of streams, and opened and closed split nodes."""

from functools import lru_cache
from typing import Any, Final

import numpy as np

from algorithms.admission.planner import PLANNER
from algorithms.vocabulary import Floats
from controlplane.arrivals import PERIOD_S
from controlplane.errors import Conflict
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest
from controlplane.planning.admission.problem import (
    Outlook,
    actions_of,
    predictions,
    split_problem,
)
from controlplane.planning.measures import Better, Measure, Unit
from controlplane.plans.admission_input import AdmissionInput
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.cluster_actions import AssignStream

NO_STREAM: Final = "The cluster has no stream, so there is nothing to assign"


def plan_admission(request: PlanRequest) -> PlannerResult:
    """Plan the split nodes of all streams for the next period.

    Raises `Conflict` no_stream, no_capacity or bad_period, and the errors of the algorithm:
    `StreamTooLarge` names a stream that no split node can read.
    """
    snapshot = request.snapshot
    given = snapshot.admission
    if given is None or not given.streams:
        raise Conflict("no_stream", NO_STREAM)
    excluded = [int(subject) for kind, subject in snapshot.excluded if kind == "stream"]
    outlook = outlook_of(request.parameters)
    split = split_problem(given, snapshot.splits, outlook, fixed=excluded)
    plan = request.algorithm.solve(split.problem, request.own, request.progress)
    return PlannerResult(actions_of(split, plan, snapshot.split_count))


def outlook_of(parameters: Any) -> Outlook:
    """Return how rates are predicted, from the parameters of a plan."""
    return Outlook(
        parameters["horizon"], parameters["period_s"], parameters["alpha"], parameters["gamma"]
    )


def _splits_after(snapshot: ClusterSnapshot, plan: Any) -> dict[int, int]:
    """Return the split node of each stream after a plan."""
    splits = dict(snapshot.splits)
    for planned in plan:
        if isinstance(planned.action, AssignStream):
            splits[planned.action.stream] = planned.action.split
    return splits


def _split_nodes(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int | None:
    if snapshot.admission is None:
        return None
    return len(set(_splits_after(snapshot, plan).values()))


def _redirected(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int | None:
    if snapshot.admission is None:
        return None
    after = _splits_after(snapshot, plan)
    return sum(after[stream] != split for stream, split in snapshot.splits.items())


def _split_overload(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    given = snapshot.admission
    if given is None or not given.capacity:
        return None
    return overload(given, _splits_after(snapshot, plan))


def overload(given: AdmissionInput, splits: dict[int, int]) -> float:
    """Return the expected records/s beyond the capacities of split nodes in their worst periods."""
    loads: dict[int, Floats] = {}
    for stream, rates in zip(given.streams, _expected(given), strict=True):
        index = splits[stream.id]
        loads[index] = loads[index] + rates if index in loads else rates.copy()
    return float(sum(max(0.0, float(load.max()) - given.capacity) for load in loads.values()))


def _expected(given: AdmissionInput) -> Floats:
    """Return the expected rates of the next periods; before and after a plan they are the same."""
    return _cached(_Held(given))


class _Held:
    """An input as an argument of a cache, compared by identity."""

    def __init__(self, given: AdmissionInput) -> None:
        self.given = given

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.given is self.given


@lru_cache(maxsize=2)
def _cached(held: _Held) -> Floats:
    rates: Floats = np.asarray(predictions(held.given, Outlook()).expected)
    return rates


SPLIT_OVERLOAD: Final = Measure(
    "split_overload", "Overload of split nodes", Unit.RATE, Better.LOWER, _split_overload
)
SPLIT_NODES: Final = Measure(
    "split_nodes", "Open split nodes", Unit.COUNT, Better.LOWER, _split_nodes
)

ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default="profile",
    effect="redirections of streams",
    hint="Redirects streams to other split nodes before their load arrives.",
    plan=plan_admission,
    improves=(SPLIT_OVERLOAD.name, SPLIT_NODES.name),
    defaults={
        "period_s": lambda _: float(PERIOD_S),
        "foresee": lambda _: True,
        "consolidate": lambda _: True,
    },
    measures=(
        SPLIT_OVERLOAD,
        SPLIT_NODES,
        Measure("redirected", "Redirected streams", Unit.COUNT, Better.NEITHER, _redirected),
    ),
    compared=0,
    reads_rates=True,
)
