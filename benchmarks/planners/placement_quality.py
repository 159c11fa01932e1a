"""Quality of the placement algorithms: replication factors over several seeds, and their ratios.

python -m benchmarks.planners.placement_quality [--seeds 3] [--seconds 10] [--queries 100000]

Instances after section 6.1 at the paper's defaults, at 1000 servers and at exponent 1.5. All
algorithms run on the same instance in the same process, one thread each.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from algorithms.errors import PlanningError
from algorithms.lab.placement.experiments.trials import configure
from algorithms.lab.registry import PLACEMENT, algorithm, algorithms
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from benchmarks.planners.placement_instances import bipartite_instance

# For small instances, and for queries of one source.
_LEFT_OUT = ("exact", "single_source")
_TIE_BREAK_SEEDS = 10


@dataclass(frozen=True)
class Case:
    """An instance per seed, and how good the best offline planner should be there."""

    title: str
    servers: int
    exponent: float
    against_mms: float
    against_hypergraph: float | None = None


_CASES = (
    Case("the paper's defaults (k = 100, beta = 2)", 100, 2.0, 0.85, 1.03),
    Case("k = 1000", 1000, 2.0, 0.88),
    Case("beta = 1.5", 100, 1.5, 0.75),
)

# (replication factor, seconds) per algorithm and seed
Outcomes = dict[str, list[tuple[float, float]]]


def main() -> None:
    options = parse_options()
    for case in _CASES:
        print(f"{options.queries:,} queries, d = 2, {case.title}; seeds 0 to {options.seeds - 1}")
        outcomes = solved(case, options.queries, range(options.seeds), options.seconds)
        report(outcomes)
        report_ratios(case, outcomes)
    report_tie_break(options.queries)


def solved(case: Case, queries: int, seeds: Sequence[int], seconds: float) -> Outcomes:
    outcomes: Outcomes = {}
    for seed in seeds:
        problem = bipartite_instance(
            queries=queries, servers=case.servers, exponent=case.exponent, seed=seed
        )
        for name, settings in contenders(seed, seconds).items():
            if result := outcome(problem, name, settings):
                outcomes.setdefault(name, []).append(result)
    return outcomes


def contenders(seed: int, seconds: float) -> dict[str, Mapping[str, float]]:
    plain = {"seed": seed, "seconds": seconds}
    names = (algorithm.name for algorithm in algorithms(PLACEMENT))
    return {name: plain for name in names if name not in _LEFT_OUT}


def outcome(
    problem: PlacementProblem, name: str, settings: Mapping[str, float]
) -> tuple[float, float] | None:
    try:
        plan = algorithm(PLACEMENT, name).solve(problem, configure(name, dict(settings)))
    except PlanningError as why:
        print(f"  {name}: {why}")
        return None
    assert plan.replication_factor is not None
    return plan.replication_factor, plan.seconds


def report(outcomes: Outcomes) -> None:
    for name, ratios in sorted(outcomes.items(), key=lambda item: mean_factor(item[1])):
        factors = [factor for factor, _ in ratios]
        spread = f"{min(factors):.4f} to {max(factors):.4f}"
        seconds = statistics.median(seconds for _, seconds in ratios)
        print(f"  {name:24} RF {mean_factor(ratios):8.4f}  ({spread})  {seconds:8.2f} s")


def report_ratios(case: Case, outcomes: Outcomes) -> None:
    offline = {algorithm.name for algorithm in algorithms(PLACEMENT, "offline")} - {"hypergraph"}
    if not offline & set(outcomes):
        return
    best = min(offline & set(outcomes), key=lambda name: mean_factor(outcomes[name]))
    compare(outcomes, best, "mms", case.against_mms)
    if case.against_hypergraph is not None:
        compare(outcomes, best, "hypergraph", case.against_hypergraph)


def compare(outcomes: Outcomes, name: str, other: str, demanded: float) -> None:
    if name in outcomes and other in outcomes:
        ratios = [a / b for (a, _), (b, _) in zip(outcomes[name], outcomes[other], strict=True)]
        outcome = "reached" if statistics.fmean(ratios) <= demanded else "MISSED"
        figures = f"{statistics.fmean(ratios):.4f} (worst {max(ratios):.4f})"
        print(f"  {name} / {other}: {figures}, demanded {demanded:g}: {outcome}")


def report_tie_break(queries: int) -> None:
    """Compare LeastCost with and without its tie-break for rare sources, at the defaults."""
    print(f"{queries:,} queries arriving, the paper's defaults; seeds 0 to {_TIE_BREAK_SEEDS - 1}")
    outcomes: Outcomes = {}
    for seed in range(_TIE_BREAK_SEEDS):
        problem = bipartite_instance(queries=queries, seed=seed)
        for name, prefer in (("rare first", "rare"), ("least_cost", "load")):
            plan = LeastCost(prefer=prefer).solve(problem)
            assert plan.replication_factor is not None
            outcomes.setdefault(name, []).append((plan.replication_factor, plan.seconds))
    report(outcomes)
    compare(outcomes, "rare first", "least_cost", 0.95)


def mean_factor(results: list[tuple[float, float]]) -> float:
    return statistics.fmean(factor for factor, _ in results)


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of algorithms with one")
    parser.add_argument("--queries", type=int, default=100_000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
