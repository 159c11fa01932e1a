"""Processor time of improvements, and the longest between two reports of progress.

    python -m benchmarks.planners.improvement.speed [--seconds 60]

Random clusters of 300 queries on 4 nodes and of 10,000 queries on 100 nodes, with the limits of the
default policy.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from algorithms.placement.improve import Goal, Improve, ImproveProblem, MeasureLimits

SIZES = ((300, 4, 100), (10_000, 100, 2_000))


class Reports:
    """The seconds of processor time at the beginning and at each report of progress."""

    def __init__(self) -> None:
        self.moments = [time.process_time()]

    def __call__(self, share: float) -> None:
        """Note a report."""
        del share
        self.moments.append(time.process_time())


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of the search")
    return parser.parse_args(arguments)


def main() -> None:
    seconds = parse_options().seconds
    for queries, nodes, streams in SIZES:
        problem = drawn(queries, nodes, streams)
        Improve(seconds=0.0).solve(problem)
        for goal in Goal:
            reports = Reports()
            plan = Improve(goal=goal.value, seconds=seconds).solve(problem, reports)
            reports(1.0)
            took, pause = reports.moments[-1] - reports.moments[0], max(np.diff(reports.moments))
            print(
                f"{queries} queries on {nodes} nodes, {goal}: {took:.1f} s, {pause:.1f} s between"
                f" reports, RF {plan.start.replication:.2f} to {plan.measured.replication:.2f},"
                f" imbalance {plan.start.imbalance:.2f} to {plan.measured.imbalance:.2f}",
                flush=True,
            )


def drawn(queries: int, nodes: int, streams: int) -> ImproveProblem:
    """Draw a cluster whose queries lie anywhere, loaded to a half."""
    draw = np.random.default_rng(0)
    weights = np.arange(1, streams + 1) ** -0.8
    counts = draw.integers(1, 5, queries)
    rows = [
        draw.choice(streams, count, replace=False, p=weights / weights.sum()) for count in counts
    ]
    problem = ImproveProblem.from_arrays(
        draw.lognormal(1.0, 1.0, streams), np.cumsum([0, *counts]), np.concatenate(rows),
        draw.integers(0, nodes, queries), np.ones(nodes), MeasureLimits(np.inf, 0.2, 1.0),
    )  # fmt: skip
    loads = problem.loads(problem.present)
    limits = problem.limits._replace(replication=0.6 * problem.measured(problem.present)[0])
    return replace(problem, capacities=np.full(nodes, 2 * loads.mean()), limits=limits)


if __name__ == "__main__":
    main()
