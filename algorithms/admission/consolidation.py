"""Closing of nearly empty split nodes: without it, the number of split nodes only grows."""

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.admission.problem import AdmissionPlan, AdmissionProblem
from algorithms.vocabulary import Floats, Ints


def consolidated(
    problem: AdmissionProblem, plan: AdmissionPlan, sizes: Floats, fill: float, room: float
) -> AdmissionPlan:
    """Return the plan with the least loaded nodes closed as long as the others take their streams.

    `sizes` float64[s, k]: as the strategy counts them; `fill`: the share of a capacity up to which
    a node is filled; `room`: the share of all capacity that stays free in every period, so that
    small changes do not open a node again at once.
    """
    assignment = plan.assignment.copy()
    capacities = np.concatenate(
        [problem.capacities, np.full(plan.nodes - problem.nodes, problem.capacity)]
    )
    loads = np.zeros((plan.nodes, sizes.shape[1]))
    np.add.at(loads, assignment, sizes)
    counts = np.bincount(assignment, minlength=plan.nodes)
    while True:
        node = _lightest(loads, counts, capacities, fill * (1 - room))
        if node is None or not _empty(node, assignment, sizes, loads, fill * capacities):
            return AdmissionPlan.of(problem, assignment, plan.nodes)
        counts = np.bincount(assignment, minlength=plan.nodes)


def _lightest(loads: Floats, counts: Ints, capacities: Floats, fill: float) -> int | None:
    """Return the open node of least load that the free capacity of the others could take."""
    used = np.flatnonzero(counts)
    if len(used) <= 1:
        return None
    node = int(used[np.argmin(loads[used].max(axis=1))])
    others = used[used != node]
    total = fill * capacities[others].sum()
    return node if (loads[used].sum(axis=0) <= total).all() else None


def _empty(node: int, assignment: Ints, sizes: Floats, loads: Floats, limits: Floats) -> bool:
    """Move the streams of a node to the others if all of them fit; return whether they do."""
    streams = np.flatnonzero(assignment == node)
    free = limits[:, None] - loads
    free[node] = -1.0
    free[loads.max(axis=1) <= 0] = -1.0
    order = streams[np.argsort(-sizes[streams].max(axis=1), kind="stable")]
    nodes, opened = best_fit(order, sizes, free, float(limits[node]))
    if opened:
        return False
    assignment[order] = nodes
    loads[node] = 0.0
    np.add.at(loads, nodes, sizes[order])
    return True
