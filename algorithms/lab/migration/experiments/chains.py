"""A sequence of migrations by one policy: each starts from the result of the one before."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from algorithms.lab.migration.future.learning import even_cuts
from algorithms.lab.migration.future.planners import ForeseenProblem, Mtm
from algorithms.lab.migration.future.projection import Landscape
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.lab.migration.schedule import schedule_transfers
from algorithms.lab.migration.ssm import ssm
from algorithms.migration.baselines import ConsistentHashing, Storm, StormMatched
from algorithms.migration.feasible import require_feasible
from algorithms.migration.free import Free
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measure_assignment
from algorithms.migration.single_step import SingleStep, assign_parts
from algorithms.vocabulary import Floats, Ints, Progress

# The paper averages the delay over this long after a migration.
_PERIOD_S = 120.0
# Bytes that are lost in sums of floats.
_ROUNDING = 1e-6

Policy = Callable[[MigrationProblem], MigrationPlan]


@dataclass(frozen=True, eq=False)
class History:
    """Tasks, and the numbers of nodes they have in turn.

    `work`, `state` float64[m]; `nodes`: the first is where the history begins, each further one a
    migration; `transitions`: those of the past.
    """

    work: Floats
    state: Floats
    nodes: Ints
    transitions: Transitions
    tau: float


def run_policy(history: History, policy: Policy, report: Progress) -> list[MigrationPlan]:
    """Migrate through the whole history from an even partitioning; return every plan."""
    owner, present = _even_owner(history), int(history.nodes[0])
    plans = []
    for done, nodes in enumerate(history.nodes[1:].tolist()):
        report(done / (len(history.nodes) - 1))
        problem = MigrationProblem.of_owner(
            history.work, history.state, owner, present, nodes, history.tau
        )
        plan = policy(problem)
        plans.append(plan)
        owner, present = renumber_nodes(plan), nodes
    return plans


def renumber_nodes(plan: MigrationPlan) -> Ints:
    """Return the new present node of each task: nodes with one interval in position order.

    Equal nodes may be renamed; those that a hash or a block number names keep their names.
    """
    if len({run.node for run in plan.intervals}) < len(plan.intervals):
        return np.searchsorted(plan.nodes, plan.assignment).astype(np.int64)
    names = np.full(max(plan.nodes) + 1, -1)
    for position, run in enumerate(plan.intervals):
        names[run.node] = position
    return names[plan.assignment]


def policy_of(
    name: str, history: History, mtm: Mtm, seed: int, report: Progress
) -> tuple[Policy, float]:
    """Return a policy and the seconds of its preparation."""
    if name == "mtm":
        return _mtm_policy(history, mtm, report)
    policies: dict[str, Policy] = {
        "single_step": SingleStep().solve,
        "ssm": _by_ssm,
        "free": Free().solve,
        "consistent_hashing": ConsistentHashing(seed=seed).solve,
        "storm": Storm().solve,
        "storm_matched": StormMatched().solve,
    }
    return policies[name], 0.0


def _mtm_policy(history: History, mtm: Mtm, report: Progress) -> tuple[Policy, float]:
    owner = _even_owner(history)
    first = int(history.nodes[0])
    start = MigrationProblem.of_owner(history.work, history.state, owner, first, first, history.tau)
    started = time.perf_counter()
    projection = mtm.projection(ForeseenProblem(start, history.transitions), progress=report)
    prepared = time.perf_counter() - started

    def policy(problem: MigrationProblem) -> MigrationPlan:
        foreseen = ForeseenProblem(problem, history.transitions)
        began = time.perf_counter()
        cuts = mtm.choose_cuts(foreseen, projection)
        return mtm.plan_for(problem, cuts, time.perf_counter() - began)

    return policy, prepared


def _by_ssm(problem: MigrationProblem) -> MigrationPlan:
    """Plan with figure 4's algorithm, for its running time."""
    require_feasible(problem)
    before = problem.work_before, problem.state_before, problem.bounds
    limit = float(problem.limits[0])
    return measure_assignment(
        problem, lambda: assign_parts(problem, ssm(*before, limit, problem.nodes))
    )


def _even_owner(history: History) -> Ints:
    rows = history.transitions
    landscape = Landscape(history.work, history.state, history.tau, 0.0, rows)
    cuts = even_cuts(landscape, rows.position(int(history.nodes[0])))
    return np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))


def mean_delay(history: History, plans: Sequence[MigrationPlan], bandwidth: float) -> float:
    """Return the mean wait of a record in the two minutes after a migration, in ms.

    A task that moves stands still until its state has arrived, `bandwidth` bytes/s on each link,
    states in the order of the optimal schedule and within a pair of nodes in task order. Records
    arrive evenly, so those of the pause p wait p / 2 in the mean.
    """
    delays = [
        _delay(history, renumber_nodes(before), plan, bandwidth) for before, plan in pairwise(plans)
    ]
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
    for phase in schedule_transfers(amounts).phases:
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
