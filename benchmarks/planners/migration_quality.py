"""Bytes moved over 100 migrations: single step, looking ahead, and what the paper compares with.

python -m benchmarks.planners.migration_quality [--histories 10] [--taus 0.4 0.8] [--migrations 100]

Unit tasks on 8 to 16 nodes after recorded taxi demand; the transition matrix of each history is
counted from the 300 changes before it.
"""

import argparse
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from algorithms.lab.migration.experiments.chains import History, policy_of, run_policy
from algorithms.lab.migration.future.planners import Mtm
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.lab.migration.workloads import node_numbers
from algorithms.migration.result import MigrationPlan

_TASKS, _KNOWN = 64, 300
_SERIES = ("single_step", "mtm", "consistent_hashing", "storm", "storm_matched", "free")
# tau, series, in shares of which series' bytes, at most
_DEMANDED = (
    (0.4, "single_step", "consistent_hashing", 0.5),
    (0.4, "single_step", "storm", 0.1),
    (0.4, "mtm", "single_step", 0.97),
    (0.8, "mtm", "single_step", 0.85),
)


def main() -> None:
    options = parse_options()
    for tau in options.taus:
        histories = [history(i, tau, options.migrations) for i in range(options.histories)]
        courses = {
            name: [course(name, lives, seed) for seed, lives in enumerate(histories)]
            for name in _SERIES
        }
        report(tau, courses)


def history(number: int, tau: float, migrations: int) -> History:
    """Return the numbered stretch of the taxi record, and what was known before it."""
    numbers = node_numbers("nyc_taxi")
    begin = number * migrations
    known = numbers[begin : begin + _KNOWN + 1]
    coming = numbers[begin + _KNOWN : begin + _KNOWN + migrations + 1]
    transitions = Transitions.from_history(known, also=coming)
    return History(np.ones(_TASKS), np.ones(_TASKS), coming, transitions, tau)


class Course(NamedTuple):
    """The plan of every migration, and the seconds of the policy's preparation."""

    plans: list[MigrationPlan]
    prepared: float


def course(name: str, lives: History, seed: int) -> Course:
    policy, prepared = policy_of(name, lives, Mtm(seed=seed, method="learned"), seed, unheard)
    return Course(run_policy(lives, policy, unheard), prepared)


def report(tau: float, courses: dict[str, list[Course]]) -> None:
    migrations = len(courses[_SERIES[0]][0].plans)
    print(f"tau = {tau:g}, {_TASKS} unit tasks, {migrations} migrations, taxi demand")
    for name, lives in courses.items():
        moved = statistics.fmean(bytes_of(life) for life in lives) / _TASKS / migrations
        worst = statistics.fmean(map(imbalance, lives))
        prepared = statistics.fmean(life.prepared for life in lives)
        note = f"   prepared in {prepared:.1f} s" if prepared else ""
        print(f"  {name:20} {100 * moved:7.3f} % moved   imbalance {worst:.2f}{note}")
    for wanted, name, other, most in _DEMANDED:
        if wanted == tau:
            compare(courses[name], courses[other], f"{name} / {other}", most)


def compare(lives: Sequence[Course], others: Sequence[Course], title: str, most: float) -> None:
    ratios = [bytes_of(a) / bytes_of(b) for a, b in zip(lives, others, strict=True)]
    total = sum(map(bytes_of, lives)) / sum(map(bytes_of, others))
    outcome = "reached" if total <= most else "MISSED"
    print(f"  {title}: {total:.3f} (worst {max(ratios):.3f}), demanded {most:g}: {outcome}")


def bytes_of(life: Course) -> float:
    return sum(plan.cost for plan in life.plans)


def imbalance(life: Course) -> float:
    """Return the busiest node's work over the mean, less 1, in the mean over all migrations."""
    return statistics.fmean(plan.max_load * len(plan.nodes) / _TASKS - 1 for plan in life.plans)


def unheard(share: float) -> None:
    """Ignore progress."""


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histories", type=int, default=10)
    parser.add_argument("--taus", type=float, nargs="+", default=[0.4, 0.8])
    parser.add_argument("--migrations", type=int, default=100, help="of each history")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
