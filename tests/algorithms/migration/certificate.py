"""A check of any migration plan that shares no code with the algorithms: it only adds up."""

import math

from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan

_TOLERANCE = 1e-9


def certify(problem: MigrationProblem, plan: MigrationPlan, *, intervals: bool = True) -> None:
    """Raise `AssertionError` unless the plan places every task and its measures are true.

    `intervals`: whether each node must have at most one interval.
    """
    faults = _placement_faults(problem, plan, intervals) or _measure_faults(problem, plan)
    if faults:
        raise AssertionError("; ".join(faults))


def _placement_faults(problem: MigrationProblem, plan: MigrationPlan, intervals: bool) -> list[str]:
    covered = [task for _, first, stop in plan.intervals for task in range(first, stop)]
    faults = []
    if covered != list(range(problem.tasks)):
        faults.append(f"the intervals do not hold each of {problem.tasks} tasks once, in order")
    if intervals and len({run.node for run in plan.intervals}) != len(plan.intervals):
        faults.append("a node has two intervals")
    strange = {run.node for run in plan.intervals} - set(plan.nodes)
    faults += [f"node {node} is not among the targets {plan.nodes}" for node in strange]
    return faults + _target_faults(problem, plan)


def _target_faults(problem: MigrationProblem, plan: MigrationPlan) -> list[str]:
    known = max(problem.nodes, problem.present)
    faults = [f"node {node} is unknown" for node in plan.nodes if not 0 <= node < known]
    if len(set(plan.nodes)) != problem.nodes:
        faults.append(f"{len(set(plan.nodes))} target nodes instead of {problem.nodes}")
    if not faults and not problem.equal_nodes:
        leaving = [node for node in plan.nodes if problem.capacities[node] == 0]
        faults += [f"node {node} was to leave" for node in leaving]
    return faults


def _measure_faults(problem: MigrationProblem, plan: MigrationPlan) -> list[str]:
    present = problem.owner.tolist()
    moved: list[float] = []
    stayed: list[float] = []
    loads = [0.0] * max(problem.nodes, problem.present)
    for node, first, stop in plan.intervals:
        for task in range(first, stop):
            (stayed if present[task] == node else moved).append(float(problem.state[task]))
            loads[node] += float(problem.work[task])
    total, sum_of = math.fsum(problem.work), math.fsum(problem.capacities)
    limits = [(1 + problem.tau) * total / problem.nodes] * len(loads)
    if not problem.equal_nodes:
        limits = [(1 + problem.tau) * total * speed / sum_of for speed in problem.capacities]
    fits = all(a <= b * (1 + 1e-8) for a, b in zip(loads, limits, strict=True))
    checks = [
        ("cost", plan.cost, math.fsum(moved)),
        ("gain", plan.gain, math.fsum(stayed)),
        ("largest load", plan.max_load, max(loads)),
    ]
    faults = [
        f"{name} {claimed} where {computed} was found"
        for name, claimed, computed in checks
        if not math.isclose(claimed, computed, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    ]
    if plan.feasible != fits:
        faults.append(f"feasible is {plan.feasible}, but loads {loads} have limits {limits}")
    if plan.lower_bound > plan.cost * (1 + _TOLERANCE):
        faults.append(f"lower bound {plan.lower_bound} above the cost {plan.cost}")
    return faults
