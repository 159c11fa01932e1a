"""Closing of nearly empty split nodes: without it, the number of split nodes only grows."""

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.admission.problem import AdmissionPlan, AdmissionProblem
from algorithms.vocabulary import Floats, Ints


SMART=True
POSTPONE=1.2
COUNT=0
TOTAL=1.3
TRIES=10
def consolidated(
    problem: AdmissionProblem,
    plan: AdmissionPlan,
    sizes: Floats,
    fill: float,
    room: float,
    cycle: Floats | None = None,
    smart=False,
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
    if cycle is None: cycle=np.zeros((len(assignment),0))
    cycle_loads = np.zeros((plan.nodes, cycle.shape[1]))
    np.add.at(cycle_loads, assignment, cycle)
    rates = problem.predictions.expected[:, 0]
    while True:
        counts = np.bincount(assignment, minlength=plan.nodes)
        used = np.flatnonzero(counts)
        if not SMART or not smart:
            node = _lightest(loads, counts, capacities, fill * (1 - room))
            cand = [] if node is None else [node]
        else:
            cost = np.bincount(assignment, rates, plan.nodes)[used]
            after = loads[used, -1]
            ok = (cost <= POSTPONE * after) & ((rates.sum() <= TOTAL*sizes[:,-1].sum()))
            cost = cost + COUNT * rates.mean() * counts[used]
            cand = used[ok][np.argsort(cost[ok], kind='stable')][:TRIES].tolist()
            total=loads[used].sum(axis=0)
            cand=[n for n in cand if len(used)>1 and (total <= fill*(1-room)*(capacities[used].sum()-capacities[n])).all()]
        for node in cand:
            if _empty(node, assignment, sizes, loads, fill * capacities, cycle, cycle_loads):
                break
        else:
            return AdmissionPlan.of(problem, assignment, plan.nodes)


def _lightest(loads: Floats, counts: Ints, capacities: Floats, fill: float) -> int | None:
    """Return the open node of least load that the free capacity of the others could take."""
    used = np.flatnonzero(counts)
    if len(used) <= 1:
        return None
    node = int(used[np.argmin(loads[used].max(axis=1))])
    others = used[used != node]
    total = fill * capacities[others].sum()
    return node if (loads[used].sum(axis=0) <= total).all() else None


def _empty(node: int, assignment: Ints, sizes: Floats, loads: Floats, limits: Floats, cycle, cycle_loads) -> bool:
    """Move the streams of a node to the others if all of them fit; return whether they do."""
    streams = np.flatnonzero(assignment == node)
    free = limits[:, None] - loads
    free[node] = -1.0
    free[loads.max(axis=1) <= 0] = -1.0
    order = streams[np.argsort(-sizes[streams].max(axis=1), kind="stable")]
    nodes, opened = best_fit(order, sizes, free, float(limits[node]), cycle, limits[:, None] - cycle_loads)
    if opened:
        return False
    assignment[order] = nodes
    loads[node] = 0.0
    np.add.at(loads, nodes, sizes[order])
    cycle_loads[node] = 0.0
    np.add.at(cycle_loads, nodes, cycle[order])
    return True
