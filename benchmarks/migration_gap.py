"""How far learned projected costs are from exact ones, where partitionings can be listed.

python -m benchmarks.migration_gap [--steps 2000] [--tasks 40]

Each policy lives through the same long future; bytes per migration as shares of the exact one's.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from algorithms.lab.migration.future.exact import project
from algorithms.lab.migration.future.interval_values import best_cuts
from algorithms.lab.migration.future.learning import even_cuts, learn_values
from algorithms.lab.migration.future.matching import retained_bytes
from algorithms.lab.migration.future.planners import ForeseenProblem, Mtm
from algorithms.lab.migration.future.projection import BINS, Landscape, Projection
from algorithms.lab.migration.future.transitions import Transitions, futures
from algorithms.migration.problem import MigrationProblem
from algorithms.random_numbers import new_state
from algorithms.vocabulary import Ints

# tasks, largest number of nodes, tau
_CASES = ((12, 5, 0.4), (18, 6, 0.5), (20, 4, 0.4), (24, 6, 0.3), (28, 5, 0.4), (40, 4, 0.4))
_GAMMA = 0.8

Policy = Callable[[Ints, int], Ints]


def main() -> None:
    options = parse_options()
    print("bytes per migration over those of exact projected costs, and the listed partitionings")
    for tasks, most, tau in _CASES:
        for uneven in (False, True) if tasks <= options.tasks else ():
            report(landscape(tasks, most, tau, uneven), uneven, options.steps)


def landscape(tasks: int, most: int, tau: float, uneven: bool) -> Landscape:
    draw = np.random.default_rng(tasks)
    work = draw.integers(3, 8, tasks).astype(float) if uneven else np.ones(tasks)
    state = draw.integers(1, 10, tasks).astype(float) if uneven else np.ones(tasks)
    walk = np.cumsum(draw.choice([-1, 1], 300)) % (2 * most - 4)
    return Landscape(
        work,
        state,
        tau,
        _GAMMA,
        Transitions.from_history(2 + np.minimum(walk, 2 * most - 4 - walk)),
    )


def report(given: Landscape, uneven: bool, steps: int) -> None:
    transitions = given.transitions
    exact = project(given)
    taught = learn_values(given)
    future = futures(transitions.totals, 0, 1, steps, new_state(5))[0]
    best = bytes_moved(given, future, lambda cuts, row: exact.best(given.ground.kept, cuts, row)[0])
    rivals = {
        "single step": valued(given, np.zeros((len(transitions.counts), BINS))),
        "learned": valued(given, taught.values),
        "learned, played out": played_out(given, taught),
    }
    ratios = "   ".join(
        f"{name} {bytes_moved(given, future, policy) / best:.3f}" for name, policy in rivals.items()
    )
    listed = sum(map(len, exact.cuts.values()))
    kind = "uneven" if uneven else "unit"
    nodes = f"2..{transitions.counts.max()} nodes"
    print(
        f"  {len(given.work)} {kind:6} tasks, {nodes}, tau {given.tau:g}: {ratios}   ({listed:,})"
    )


def valued(given: Landscape, values: np.ndarray) -> Policy:
    """Decide by the sum over intervals alone."""

    def policy(cuts: Ints, row: int) -> Ints:
        limit, count = float(given.ground.limits[row]), int(given.transitions.counts[row])
        before = given.ground.work_before, given.ground.kept, cuts
        return best_cuts(*before, limit, count, given.gamma * values[row], given.ground.scale)

    return policy


def played_out(given: Landscape, taught: Projection) -> Policy:
    """Decide as the planner does: several candidates, played out on sampled futures."""
    mtm = Mtm(gamma=given.gamma, method="learned")

    def policy(cuts: Ints, row: int) -> Ints:
        count = int(given.transitions.counts[row])
        owner = np.repeat(np.arange(len(cuts) - 1), np.diff(cuts))
        problem = MigrationProblem.of_owner(
            given.work, given.state, owner, len(cuts) - 1, count, given.tau
        )
        return mtm.choose_cuts(ForeseenProblem(problem, given.transitions, taught), taught)

    return policy


def bytes_moved(given: Landscape, future: Ints, policy: Policy) -> float:
    cuts, moved = even_cuts(given, 0), 0.0
    for row in future.tolist():
        after = policy(cuts, row)
        moved += float(given.ground.kept[-1]) - retained_bytes(given.ground.kept, cuts, after)
        cuts = after
    return moved


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2_000, help="migrations")
    parser.add_argument("--tasks", type=int, default=40, help="of the largest case")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
