"""Speed of the placement algorithms on fixed instances: medians, not quality.

python -m benchmarks.planners.placement_speed [--repeats 5] [--queries 100000]
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np

from algorithms.errors import PlanningError
from algorithms.lab.placement.arrivals import choose
from algorithms.lab.placement.states import state_of
from algorithms.lab.registry import PLACEMENT, algorithms
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from benchmarks.planners.placement_instances import zipf_instance

_LIVE = 10_000


def main() -> None:
    options = parse_options()
    report_collapse(options.queries, options.repeats)
    report_solvers(options.queries, options.repeats)
    report_one_arrival(options.repeats)


def report_collapse(queries: int, repeats: int) -> None:
    instance = zipf_instance(queries=queries)
    seconds = median_seconds(lambda: rebuilt(instance).types, repeats)
    print(f"{f'{queries:,} queries: check and collapse':44} {seconds * 1e3:10.1f} ms")


def report_solvers(queries: int, repeats: int) -> None:
    for exponent in (2.0, 1.0):
        instance = zipf_instance(queries=queries, exponent=exponent)
        types = len(instance.types)
        print(f"{queries:,} queries, d=2, k=100, Zipf {exponent}: {types:,} types")
        for algorithm in algorithms(PLACEMENT):
            try:
                algorithm.solve(instance)  # compiles, or loads what was compiled
            except PlanningError as refusal:  # as `exact` and `single_source` do
                print(f"  {algorithm.name:42} {refusal}")
                continue
            plans = [algorithm.solve(instance) for _ in range(repeats)]
            seconds = statistics.median(plan.seconds for plan in plans)
            ratio = f"replication {plans[0].replication_factor:.3f}"
            print(f"  {algorithm.name:42} {seconds * 1e3:10.1f} ms   {ratio}")


def report_one_arrival(repeats: int) -> None:
    instance = zipf_instance(queries=_LIVE, sources=2_000, sources_per_query=4, exponent=1.0)
    placement, assignment = LeastCost(), LeastCost().solve(instance).assignment.tolist()
    arriving = instance.sources_of(7).tolist()
    state = state_of(placement, instance, assignment)
    load = median_seconds(lambda: state_of(placement, instance, assignment), 10 * repeats)
    place = median_seconds(lambda: choose(placement, state, arriving), 100 * repeats)
    print(f"{'state of 10,000 live queries, in bulk':44} {load * 1e3:10.2f} ms")
    print(f"{'one arrival at 10,000 live queries':44} {place * 1e3:10.3f} ms")


def rebuilt(problem: PlacementProblem) -> PlacementProblem:
    return PlacementProblem.from_arrays(
        problem.rates, problem.indptr, problem.indices, problem.servers, problem.nu
    )


def median_seconds(action: Callable[[], object], repeats: int) -> float:
    times = np.empty(repeats)
    for number in range(repeats):
        started = time.perf_counter()
        action()
        times[number] = time.perf_counter() - started
    return float(np.median(times))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--queries", type=int, default=100_000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
