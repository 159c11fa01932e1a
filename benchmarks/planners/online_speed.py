"""Speed of online placement: a million arrivals at once, and one at a time in service.

python -m benchmarks.planners.online_speed [--repeats 5] [--queries 1000000]

Medians after compilation; every figure in one process, whose memory is printed at the end.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Sequence

import numpy as np

from algorithms.lab.placement.service import PlacementService
from algorithms.placement.online import LeastCost, OnRand
from algorithms.placement.online.pipeline import OnlinePlacement
from algorithms.placement.problem import PlacementProblem
from benchmarks.planners.placement_instances import bipartite_instance

_EVENTS = 100_000


def main() -> None:
    options = parse_options()
    for servers, demanded in ((100, 1.0), (1_000, 2.0)):
        problem = bipartite_instance(queries=options.queries, servers=servers)
        report_all_at_once(problem, options.repeats, demanded)
    report_service(problem)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'largest memory of this process':52} {peak:8.0f} MB")


def report_all_at_once(problem: PlacementProblem, repeats: int, demanded: float) -> None:
    algorithms = (LeastCost(), LeastCost(prefer="rare"), OnRand())
    for algorithm in algorithms:
        algorithm.solve(problem)
        plans = [algorithm.solve(problem) for _ in range(repeats)]
        seconds = statistics.median(plan.seconds for plan in plans)
        name = f"{problem.queries:,} queries, k = {problem.servers}: {algorithm_name(algorithm)}"
        wanted = f"(demanded {demanded:g} s)" if algorithm == LeastCost() else ""
        factor = plans[0].replication_factor
        print(f"{name:52} {seconds:8.3f} s   RF {factor:.3f} {wanted}")


def algorithm_name(algorithm: OnlinePlacement) -> str:
    rare = getattr(algorithm, "prefer", "") == "rare"
    return type(algorithm).__name__ + (" (rare first)" if rare else "")


def report_service(problem: PlacementProblem) -> None:
    """Fill the service with all queries, then let some of them leave and arrive in turn."""
    service = PlacementService(LeastCost(), problem.servers, problem.rates)
    rows = [problem.sources_of(query).tolist() for query in range(problem.queries)]
    started = time.perf_counter()
    for query, row in enumerate(rows):
        service.place(query, row)
    filling = (time.perf_counter() - started) / len(rows)
    print(f"{'in service, one arrival while it is filled':52} {filling * 1e6:8.1f} us")
    draw, events = np.random.default_rng(0), min(_EVENTS, len(rows))
    leaving = draw.choice(len(rows), events, replace=False).tolist()
    departures, arrivals = np.empty(events), np.empty(events)
    for number, query in enumerate(leaving):
        started = time.perf_counter()
        service.remove(query)
        between = time.perf_counter()
        service.place(query, rows[query])
        departures[number], arrivals[number] = between - started, time.perf_counter() - between
    for name, times in (("arrival", arrivals), ("departure", departures)):
        middle, tail = np.percentile(times, [50, 99]) * 1e6
        title = f"in service at {len(rows):,} live, k = {problem.servers}: one {name}"
        print(f"{title:52} {middle:8.1f} us   p99 {tail:.1f} us (demanded 20 us)")


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--queries", type=int, default=1_000_000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
