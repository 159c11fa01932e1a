"""Closing of nearly empty split nodes: without it, the number of split nodes only grows."""

from dataclasses import dataclass

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.admission.problem import AdmissionPlan, AdmissionProblem
from algorithms.vocabulary import Floats, Ints


def consolidated(
    problem: AdmissionProblem,
    plan: AdmissionPlan,
    sizes: Floats,
    fill: float,
    room: float,
    cycle: Floats | None = None,
) -> AdmissionPlan:
    """Return the plan with the least loaded nodes closed as long as the others take their streams.

    `sizes` float64[s, k]: as the strategy counts them; `fill`: the share of a capacity up to which
    a node is filled; `room`: the share of all capacity that stays free in every period, so that
    small changes do not open a node again at once. `cycle` float64[s, q]: rates in the parts of a
    cycle, which `best_fit` balances; then the node that is closed is the one with the least load in
    the next period, because the clients of its streams buffer that.
    """
    nodes = _Nodes.of(problem, plan, sizes, fill, cycle)
    while True:
        loads = nodes.loads.max(axis=1) if cycle is None else nodes.loads[:, 0]
        node = _lightest(nodes, loads, 1 - room)
        if node is None or not _empty(nodes, node):
            return AdmissionPlan.of(problem, nodes.assignment, plan.nodes)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The m nodes of a plan, changed in place.

    `assignment` int64[s]; `sizes` float64[s, k], `cycle` float64[s, q]: of the streams; `loads`
    float64[m, k], `cycle_loads` float64[m, q]: their sums; `limits` float64[m].
    """

    assignment: Ints
    sizes: Floats
    cycle: Floats
    loads: Floats
    cycle_loads: Floats
    limits: Floats

    @classmethod
    def of(
        cls,
        problem: AdmissionProblem,
        plan: AdmissionPlan,
        sizes: Floats,
        fill: float,
        cycle: Floats | None,
    ) -> "_Nodes":
        """Return the nodes of a plan."""
        cycle = np.zeros((len(sizes), 0)) if cycle is None else cycle
        loads = np.zeros((plan.nodes, sizes.shape[1]))
        np.add.at(loads, plan.assignment, sizes)
        cycle_loads = np.zeros((plan.nodes, cycle.shape[1]))
        np.add.at(cycle_loads, plan.assignment, cycle)
        opened = np.full(plan.nodes - problem.nodes, problem.capacity)
        limits = fill * np.concatenate([problem.capacities, opened])
        return cls(plan.assignment.copy(), sizes, cycle, loads, cycle_loads, limits)


def _lightest(nodes: _Nodes, loads: Floats, share: float) -> int | None:
    """Return the node of least load float64[m] if a share of the others' limits is enough."""
    used = np.flatnonzero(np.bincount(nodes.assignment, minlength=len(loads)))
    if len(used) <= 1:
        return None
    node = int(used[np.argmin(loads[used])])
    total = share * nodes.limits[used[used != node]].sum()
    return node if (nodes.loads[used].sum(axis=0) <= total).all() else None


def _empty(nodes: _Nodes, node: int) -> bool:
    """Move the streams of a node to the others if all of them fit; return whether they do."""
    sizes, cycle = nodes.sizes, nodes.cycle
    streams = np.flatnonzero(nodes.assignment == node)
    free = nodes.limits[:, None] - nodes.loads
    free[node] = -1.0
    free[nodes.loads.max(axis=1) <= 0] = -1.0
    order = streams[np.argsort(-sizes[streams].max(axis=1), kind="stable")]
    cycle_free = nodes.limits[:, None] - nodes.cycle_loads
    targets, opened = best_fit(order, sizes, free, float(nodes.limits[node]), cycle, cycle_free)
    if opened:
        return False
    nodes.assignment[order] = targets
    for loads, rates in ((nodes.loads, sizes), (nodes.cycle_loads, cycle)):
        loads[node] = 0.0
        np.add.at(loads, targets, rates[order])
    return True
