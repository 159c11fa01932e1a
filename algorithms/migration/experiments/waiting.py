"""How long records wait for state in transfer: section 6, figure 13, computed."""

import numpy as np

from algorithms.migration.experiments.chains import Course, History, renumbered
from algorithms.migration.result import MigrationPlan
from algorithms.migration.schedule import scheduled
from algorithms.vocabulary import Floats, Ints

# The paper averages the delay over this long after a migration.
_PERIOD_S = 120.0
# Bytes that are lost in sums of floats.
_ROUNDING = 1e-6


def mean_delay(history: History, course: Course, bandwidth: float) -> float:
    """Return the mean wait of a record in the two minutes after a migration, in ms.

    A task that moves stands still until its state has arrived, `bandwidth` bytes/s on each link,
    states in the order of the optimal schedule and within a pair of nodes in task order. Records
    arrive evenly, so those of the pause p wait p / 2 in the mean.
    """
    delays = []
    owner = None
    for plan in course.plans:
        if owner is not None:
            delays.append(_delay(history, owner, plan, bandwidth))
        owner = renumbered(plan)
    return 1000 * float(np.mean(delays)) if delays else 0.0


def _delay(history: History, owner: Ints, plan: MigrationPlan, bandwidth: float) -> float:
    pauses = np.minimum(arrivals(history.state, owner, plan) / bandwidth, _PERIOD_S)
    shares = history.work / history.work.sum()
    return float((shares * pauses**2 / 2).sum() / _PERIOD_S)


def arrivals(state: Floats, owner: Ints, plan: MigrationPlan) -> Floats:
    """Return when each task's state arrives, in bytes per link; 0 for tasks that stay."""
    nodes = int(max(owner.max(), plan.assignment.max())) + 1
    amounts = np.zeros((nodes, nodes))
    moved = np.flatnonzero(owner != plan.assignment)
    np.add.at(amounts, (owner[moved], plan.assignment[moved]), state[moved])
    sent = {(int(owner[task]), int(plan.assignment[task])): 0.0 for task in moved}
    waiting: dict[tuple[int, int], list[int]] = {way: [] for way in sent}
    for task in moved.tolist():
        waiting[int(owner[task]), int(plan.assignment[task])].append(task)
    waits = np.zeros(len(state))
    for phase in scheduled(amounts).phases:
        for source, target, amount in phase.transfers:
            way, flown = (source, target), 0.0
            tasks = waiting[way]
            while tasks and sent[way] + amount - flown >= state[tasks[0]] - _ROUNDING:
                task = tasks.pop(0)
                flown += state[task] - sent[way]
                sent[way] = 0.0
                waits[task] = phase.start + flown
            sent[way] += amount - flown
    return waits
