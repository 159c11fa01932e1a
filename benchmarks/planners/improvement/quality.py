"""Plans from running placements against those of all other algorithms that keep the same limits.

    python -m benchmarks.planners.improvement.quality [--clusters 100] [--seconds 1] [--first 0]

Random clusters, then the taxi trips of the folder of data sets. Of each cluster the traffic of the
plans of two goals, less traffic and repair, over the least traffic of any other algorithm at any
slack whose plan exceeds no limit further than ours. Then the demonstration at its start.
"""

import argparse
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import django
import numpy as np

from algorithms.errors import PlanningError
from algorithms.lab.datasets import data_folder
from algorithms.lab.placement.experiments.trials import configure
from algorithms.lab.placement.workloads.trips import RATES_FILE, TRIPS_FILE, read_trips, tile_rates
from algorithms.lab.registry import PLACEMENT, algorithm
from algorithms.placement.improve import Goal, Improve, Improvement, ImproveProblem, MeasureLimits
from algorithms.placement.online import LeastCost, LeastCostWithinLoads, OnlineState
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Floats, SmallInts
from workers.demo.taxis import Taxis

OTHERS: Final = ("refined", "mms", "ic", "mqp", "least_cost", "least_source", "least_qt")
SLACKS: Final = (0.05, 0.2, 0.5, 1.0)
NU: Final = 0.05
# The defaults of policies: above the best reachable, imbalance, load of a node.
POLICY: Final = (0.2, 0.2, 1.0)
WIDEST: Final = 1e-9
# Trips of so many days at these numbers of nodes.
TRIPS: Final = ((300, 4), (1_000, 8), (3_000, 16))
DEMO_SPEED: Final = 10
DEMO_QUERIES: Final = 300


@dataclass(frozen=True)
class Case:
    """A running cluster, as problem of both kinds."""

    name: str
    anew: PlacementProblem
    running: ImproveProblem


def main() -> None:
    options = parse_options()
    ratios: dict[Goal, list[float]] = {Goal.TRAFFIC: [], Goal.REPAIR: []}
    for case in cases(options.first, options.clusters):
        compare(case, options.seconds, ratios)
    for goal, values in ratios.items():
        mean, worst = statistics.fmean(values), max(values)
        print(f"{goal}: mean {mean:.4f}, worst {worst:.3f} of {len(values)} with another plan")
    demonstrate()


def cases(first: int, clusters: int) -> Iterator[Case]:
    """Yield random clusters, then those of trips."""
    for seed in range(first, first + clusters):
        yield random_cluster(seed)
    if not (data_folder() / TRIPS_FILE).is_file():
        return
    trips = read_trips(data_folder() / TRIPS_FILE)
    rates = tile_rates(data_folder() / RATES_FILE, trips.tiles)
    for queries, nodes in TRIPS:
        rows = trips.subscriptions
        stop = int(rows.indptr[queries])
        problem = PlacementProblem.from_arrays(
            rates, rows.indptr[: queries + 1], rows.indices[:stop], nodes, NU, round_up=True
        )
        present = LeastCost(nu=NU, alpha=10.0).solve(problem).assignment
        yield case_of(f"{queries} trips on {nodes} nodes", problem, present, 0.5)


def random_cluster(seed: int) -> Case:
    """Draw a cluster; its queries lie anywhere, as they came, or as they came to half its nodes."""
    draw = np.random.default_rng(seed)
    nodes, queries = int(draw.integers(2, 13)), int(draw.integers(20, 400))
    streams, most = int(draw.integers(5, max(6, queries))), int(draw.integers(1, 6))
    weights = np.arange(1, streams + 1) ** -draw.uniform(0.0, 1.5)
    rows = [
        draw.choice(
            streams, min(streams, int(draw.integers(1, most + 1))), replace=False,
            p=weights / weights.sum(),
        ).tolist()
        for _ in range(queries)
    ]  # fmt: skip
    rates = draw.lognormal(1.0, draw.uniform(0.0, 1.2), streams)
    sizes = np.ones(nodes) if draw.random() < 0.6 else draw.choice([0.5, 1.0, 2.0], nodes)
    used = (nodes, nodes, max(1, nodes // 2))[int(draw.integers(3))]
    present = draw.integers(0, nodes, queries).astype(np.int32)
    if draw.random() < 0.67:
        some = PlacementProblem.from_lists(rates, rows, used, NU, sizes[:used], round_up=True)
        present = LeastCost(nu=NU, alpha=10.0).solve(some).assignment
    problem = PlacementProblem.from_lists(rates, rows, nodes, NU, sizes, round_up=True)
    return case_of(f"random {seed}", problem, present, draw.uniform(0.3, 0.9))


def case_of(name: str, problem: PlacementProblem, present: SmallInts, load: float) -> Case:
    """Return a case whose nodes are loaded to `load` on average."""
    traffic = float(delivered(problem, present).sum())
    capacities = problem.capacities * traffic / (load * problem.capacities.sum())
    return Case(name, problem, running(problem, present, capacities))


def running(problem: PlacementProblem, present: SmallInts, capacities: Floats) -> ImproveProblem:
    """Return the problem of a running placement, with the limits of the default policy."""
    limits = MeasureLimits(np.inf, *POLICY[1:])
    unlimited = ImproveProblem.from_arrays(
        problem.rates, problem.indptr, problem.indices, present, capacities, limits
    )
    best = Improve().solve(replace(unlimited, costs=np.zeros(unlimited.units))).measured
    above = limits._replace(replication=(1 + POLICY[0]) * max(1.0, best.replication))
    return replace(unlimited, limits=above)


def delivered(problem: PlacementProblem, present: SmallInts) -> Floats:
    """Return the records/s that each node receives."""
    there = np.zeros((problem.servers, len(problem.rates)), np.bool_)
    there[np.repeat(present, np.diff(problem.indptr)), problem.indices] = True
    received: Floats = there @ problem.rates
    return received


def compare(case: Case, seconds: float, ratios: dict[Goal, list[float]]) -> None:
    plans = {goal: timed(case.running, goal) for goal in ratios}
    best = {goal: best_of_others(case, plan, seconds) for goal, (plan, _) in plans.items()}
    texts = []
    for goal, (plan, took) in plans.items():
        other = best[goal]
        if other is not None:
            ratios[goal].append(plan.measured.replication / other)
        moves = int((plan.assignment != case.running.present).sum())
        versus = f"{plan.measured.replication / other:.3f}" if other is not None else "no other"
        figures = f"RF {plan.measured.replication:.3f} imbalance {plan.measured.imbalance:.3f}"
        texts.append(f"{goal} {figures} moves {moves} ({versus}, {took:.1f} s)")
    size = f"{case.running.units} queries on {case.running.nodes} nodes"
    print(f"{case.name} ({size}): {'; '.join(texts)}", flush=True)


def timed(problem: ImproveProblem, goal: Goal) -> tuple[Improvement, float]:
    """Return a plan and its seconds of processor time."""
    started = time.process_time()
    plan = Improve(goal=goal.value).solve(problem)
    return plan, time.process_time() - started


def best_of_others(case: Case, plan: Improvement, seconds: float) -> float | None:
    """Return the least replication factor of another plan that keeps what ours keeps."""
    limits = case.running.limits
    caps = limits.not_below(plan.start)
    exceeded = [over + WIDEST for over in limits.exceedances(plan.measured)]
    factors = []
    for hosts in others(case, seconds):
        measured = case.running.measured(hosts)
        keeps = all(value <= cap + WIDEST for value, cap in zip(measured, caps, strict=True))
        if keeps and limits.exceedances(measured) <= exceeded:
            factors.append(measured.replication)
    return min(factors, default=None)


def others(case: Case, seconds: float) -> Iterator[SmallInts]:
    """Yield the plans of the other algorithms at each slack."""
    for slack in SLACKS:
        problem = PlacementProblem.from_arrays(
            case.anew.rates, case.anew.indptr, case.anew.indices, case.anew.servers, slack,
            case.anew.capacities, round_up=True,
        )  # fmt: skip
        for name in OTHERS:
            settings = configure(name, {"seed": 0, "seconds": seconds})
            try:
                yield algorithm(PLACEMENT, name).solve(problem, settings).assignment
            except PlanningError as why:
                print(f"  {name}: {why}")


def demonstrate() -> None:
    """Print the plan that is recommended to the demonstration, some minutes after its start."""
    for minutes in (1, 3, 5, 10, 20):
        problem = demonstration(minutes)
        plan, took = timed(problem, Goal.REPAIR)
        moves = int((plan.assignment != problem.present).sum())
        print(
            f"demonstration after {minutes} min: RF {plan.start.replication:.2f}"
            f" (limit {problem.limits.replication:.2f}) to {plan.measured.replication:.2f},"
            f" imbalance {plan.start.imbalance:.3f} to {plan.measured.imbalance:.3f},"
            f" {moves} of {problem.units} queries move; {took:.1f} s"
        )


def demonstration(minutes: float) -> ImproveProblem:
    """Return the demonstration as it runs then."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
    django.setup()
    from controlplane.clusters.demo import CLUSTERS  # noqa: PLC0415 - needs Django's settings
    from controlplane.models import Cluster  # noqa: PLC0415
    from controlplane.policies.measure_limits import arrival_limits  # noqa: PLC0415
    from controlplane.policies.settings import PolicySettings  # noqa: PLC0415

    program, cluster = Taxis(DEMO_SPEED, DEMO_QUERIES), CLUSTERS["sf"]
    streams = program.declarations()
    numbers = {stream["name"]: number for number, stream in enumerate(streams)}
    declared = np.array([stream["declared_rate"] for stream in streams])
    sizes = np.full(cluster.nodes, cluster.capacity)
    placement = LeastCostWithinLoads(sizes, arrival_limits(Cluster(), PolicySettings()))
    hosts: dict[str, int] = {}
    reads: dict[str, list[int]] = {}
    end = int(minutes * 60_000 * DEMO_SPEED)
    for moment in range(0, end + 1, 2_000 * DEMO_SPEED):
        wanted = {query.name: query.streams for query in program.queries_at(moment)}
        hosts = {name: node for name, node in hosts.items() if name in wanted}
        state = online_state(declared, hosts, reads, cluster.nodes)
        for name in [name for name in wanted if name not in hosts]:
            reads[name] = [numbers[stream] for stream in wanted[name]]
            hosts[name] = placement.place(state, reads[name])
    rates = np.zeros(len(streams))
    for name, records in program.records_between(end - 60_000 * DEMO_SPEED, end).items():
        rates[numbers[name]] = records.num_rows / 60
    rows = [reads[name] for name in hosts]
    problem = PlacementProblem.from_lists(rates, rows, cluster.nodes, NU, round_up=True)
    present = np.array(list(hosts.values()), np.int32)
    return running(problem, present, sizes)


def online_state(
    rates: Floats, hosts: dict[str, int], reads: dict[str, list[int]], nodes: int
) -> OnlineState:
    """Return the state of online placement with these queries."""
    counts = np.zeros((nodes, len(rates)), np.int64)
    for name, node in hosts.items():
        counts[node, reads[name]] += 1
    loads = np.bincount(list(hosts.values()), minlength=nodes)
    readers = ((node, stream, counts[node, stream]) for node, stream in np.argwhere(counts))
    return OnlineState.from_counts(nodes, rates, loads, readers, np.ones(nodes))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first cluster")
    parser.add_argument("--seconds", type=float, default=1.0, help="of annealing from nothing")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
