"""A check of any plan that shares no code with the algorithms: only sets and sums."""

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Ints

# Sums of rates taken in another order differ in the last digits.
_TOLERANCE = 1e-9


def certify(
    problem: PlacementProblem, plan: PlacementPlan, caps: Sequence[int] | Ints | None = None
) -> None:
    """Raise `AssertionError` unless the plan is feasible at `caps` and its measures are true.

    Without `caps` at those of section 2, which are computed again from capacities and slack.
    Recomputes loads, traffic and replication factor from the assignment and the queries.
    """
    faults = placement_faults(problem, plan, offline_caps(problem) if caps is None else caps)
    if not faults:
        faults = measure_faults(problem, plan)
    if faults:
        raise AssertionError("; ".join(faults))


def offline_caps(problem: PlacementProblem) -> list[int]:
    """Return the most queries each server may host: floor((1 + nu) n share), by decimals.

    With `round_up` at least n share, rounded up.
    """
    sizes = [Fraction(repr(size)) for size in problem.capacities.tolist()]
    slack, caps = 1 + Fraction(repr(problem.nu)), []
    for size in sizes:
        mean = problem.queries * size / sum(sizes)
        caps.append(max(slack * mean // 1, -(-mean // 1) if problem.round_up else 0))
    return [int(cap) for cap in caps]


def placement_faults(
    problem: PlacementProblem, plan: PlacementPlan, caps: Sequence[int] | Ints
) -> list[str]:
    """Return the reasons why the assignment is infeasible."""
    servers = [int(server) for server in plan.assignment]
    if len(servers) != problem.queries:
        return [f"{len(servers)} assignments for {problem.queries} queries"]
    faults = [
        f"query {query} is on server {server} of {problem.servers}"
        for query, server in enumerate(servers)
        if not 0 <= server < problem.servers
    ]
    if faults:
        return faults
    loads = Counter(servers)
    return [
        f"server {server} hosts {load}, cap {int(caps[server])}"
        for server, load in sorted(loads.items())
        if load > int(caps[server])
    ]


def measure_faults(problem: PlacementProblem, plan: PlacementPlan) -> list[str]:
    """Return which of the plan's measures differ from computed ones."""
    servers = [int(server) for server in plan.assignment]
    loads = [0] * problem.servers
    delivered: set[tuple[int, int]] = set()
    for query, server in enumerate(servers):
        loads[server] += 1
        delivered.update((server, int(source)) for source in problem.sources_of(query))
    traffic = math.fsum(float(problem.rates[source]) for _, source in delivered)
    live = math.fsum(float(problem.rates[source]) for source in {s for _, s in delivered})
    faults = []
    if plan.loads.tolist() != loads:
        faults.append(f"loads {plan.loads.tolist()} where {loads} was found")
    if plan.max_load != max(loads):
        faults.append(f"largest load {plan.max_load} where {max(loads)} was found")
    if not math.isclose(plan.traffic, traffic, rel_tol=_TOLERANCE):
        faults.append(f"traffic {plan.traffic} where {traffic} was found")
    if not _same_ratio(plan.replication_factor, traffic, live):
        faults.append(f"replication factor {plan.replication_factor} of {traffic} / {live}")
    if plan.lower_bound > traffic * (1 + _TOLERANCE):
        faults.append(f"lower bound {plan.lower_bound} above traffic {traffic}")
    return faults


def _same_ratio(ratio: float | None, traffic: float, live: float) -> bool:
    if ratio is None or not live:
        return ratio is None and not live
    return math.isclose(ratio, traffic / live, rel_tol=_TOLERANCE)
