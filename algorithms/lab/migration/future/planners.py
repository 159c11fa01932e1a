"""The planners for future migrations, as forms, API and command line offer them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.errors import BadProblem, TooLarge
from algorithms.estimates import Estimate, ProblemSize
from algorithms.lab.migration.future.exact import ExactProjection, project
from algorithms.lab.migration.future.interval_values import best_cuts
from algorithms.lab.migration.future.learning import Effort, Runner, learn_values
from algorithms.lab.migration.future.matching import match_nodes, retained_bytes
from algorithms.lab.migration.future.partitionings import optimal_sequence
from algorithms.lab.migration.future.projection import Ground, Landscape, Projection
from algorithms.lab.migration.future.rollout import discounted_cost
from algorithms.lab.migration.future.transitions import Transitions, futures
from algorithms.migration.feasible import require_feasible
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measure
from algorithms.random_numbers import new_state
from algorithms.vocabulary import MAX_SEED, Ints, Parameters, Progress, parameter, portion, silent

# Bounds of the parameters of `Mtm`.
MAX_ROUNDS: Final = 100
MAX_PATHS: Final = 10_000
# How much of the learned values candidates are made with: 0 is the single step.
_BOLDNESS = (0.0, 0.5, 1.0, 1.6)
# The largest share of progress that learning takes; deciding takes the rest.
_LEARNING = 0.95


@dataclass(frozen=True, eq=False)
class ForeseenProblem:
    """A migration with the probabilities of later ones, perhaps with projected costs."""

    problem: MigrationProblem
    transitions: Transitions
    projection: Projection | None = None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The possible numbers of nodes, of this migration and later ones."""
        return (self.problem.nodes, *self.transitions.counts.tolist())


@dataclass(frozen=True, eq=False)
class SequenceProblem:
    """A known sequence of migrations: `nodes` are the target numbers in turn."""

    problem: MigrationProblem
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Mtm(Parameters):
    """Migration that considers later migrations, section 4.2: fewest bytes in total.

    Projected costs are exact where all partitionings can be listed, else learned; a learned
    decision is the best of several candidates, played out on sampled futures.
    """

    gamma: float = parameter(
        0.8,
        title="Discount factor",
        letter="gamma",
        help="How much a byte of the next migration counts against one of this; 0 is the single "
        "step.",
        minimum=0.0,
        maximum=0.99,
    )
    method: str = parameter(
        "auto",
        title="Projection of costs",
        help="How costs are projected: computed exactly, or learned.",
        choices={"auto": "Exact where possible", "exact": "Exact", "learned": "Learned"},
    )
    rounds: int = parameter(
        6, title="Rounds of learning", help="Rounds of learning.", minimum=1, maximum=MAX_ROUNDS
    )
    paths: int = parameter(
        128,
        title="Sampled futures",
        help="Sampled futures that a decision is played out on.",
        minimum=1,
        maximum=MAX_PATHS,
    )
    horizon: int = parameter(
        20,
        title="Length of a sampled future",
        unit="migrations",
        help="How far a sampled future looks.",
        minimum=1,
        maximum=1_000,
    )
    seed: int = parameter(0, help="Same seed, same plan.", minimum=0, maximum=MAX_SEED)

    def estimate(self, size: ProblemSize) -> Estimate:
        """Return the estimate: learning in rounds, and futures that are played out."""
        tasks = max(size.queries, size.nodes, 1)
        seconds = 1e-3 * tasks**2 * self.rounds + 1e-6 * tasks * self.paths * self.horizon
        return super().estimate(size).plus(seconds, 8_000.0 * tasks)

    def solve(self, foreseen: ForeseenProblem, progress: Progress = silent) -> MigrationPlan:
        """Project costs and plan one migration.

        Raises `InfeasibleTau` if a possible number of nodes cannot keep tau, `TooLarge` if exact
        costs are requested but impossible.
        """
        started = time.perf_counter()
        _require_feasible_on(foreseen.problem, foreseen.numbers)
        projection = foreseen.projection or self.projection(foreseen, progress=progress)
        cuts = self.choose_cuts(foreseen, projection)
        progress(1.0)
        return self.plan_for(foreseen.problem, cuts, time.perf_counter() - started)

    def plan_for(self, problem: MigrationProblem, cuts: Ints, seconds: float) -> MigrationPlan:
        """Return the plan with these cuts, each interval on the node that keeps most of it."""
        names = match_nodes(problem.state_before, problem.bounds, range(problem.present), cuts)
        assignment = np.repeat(np.array(names, np.int32), np.diff(cuts))
        return measure(problem, assignment, names, seconds)

    def projection(
        self, foreseen: ForeseenProblem, run: Runner = map, progress: Progress = silent
    ) -> ExactProjection | Projection:
        """Return the projected costs, which all migrations on the same landscape share."""
        landscape = self.landscape(foreseen)
        _require_feasible_on(foreseen.problem, foreseen.numbers)
        if self.method != "learned":
            try:
                return project(landscape)
            except TooLarge:
                if self.method == "exact":
                    raise
        effort = Effort(rounds=self.rounds)
        return learn_values(landscape, effort, self.seed, run, portion(progress, 0.0, _LEARNING))

    def landscape(self, foreseen: ForeseenProblem) -> Landscape:
        """Return the landscape, on which the projected costs depend."""
        problem = foreseen.problem
        if not problem.equal_nodes:
            raise BadProblem("capacities", "must be null: costs are projected for equal nodes")
        given = problem.work.copy(), problem.state.copy(), problem.tau
        return Landscape(*given, self.gamma, foreseen.transitions)

    def choose_cuts(
        self, foreseen: ForeseenProblem, projection: ExactProjection | Projection
    ) -> Ints:
        """Return the cuts of the best partitioning, int64[n' + 1].

        Raises `BadProblem` where the projection is of another landscape.
        """
        landscape, problem = self.landscape(foreseen), foreseen.problem
        ground = landscape.ground
        row = foreseen.transitions.position(problem.nodes)
        if isinstance(projection, ExactProjection):
            return projection.best(ground.kept, problem.bounds, row)[0]
        if projection.key != landscape.key:
            raise BadProblem("projection", "is of other tasks, balance, transitions or gamma")
        candidates = _candidates(ground, problem, projection, row)
        ahead = futures(
            foreseen.transitions.totals, row, self.paths, self.horizon, new_state(self.seed)
        )

        def price(cuts: Ints) -> float:
            now = problem.total_state - retained_bytes(ground.kept, problem.bounds, cuts)
            return now + self.gamma * discounted_cost(ground, cuts, ahead, projection.values)

        return min(candidates, key=price)


@dataclass(frozen=True)
class Sequence(Parameters):
    """The fewest bytes over a known sequence of node numbers, section 4.1: optimal (OMS)."""

    def solve(self, foreseen: SequenceProblem, progress: Progress = silent) -> list[MigrationPlan]:
        """Plan all migrations; nodes keep their numbers, new ones are numbered on.

        Raises `InfeasibleTau`, and `TooLarge` if there are too many partitionings.
        """
        problem = foreseen.problem
        if not problem.equal_nodes:
            raise BadProblem("capacities", "must be null: sequences are planned on equal nodes")
        _require_feasible_on(problem, foreseen.nodes)
        started = time.perf_counter()
        before = problem.work_before, problem.state_before, problem.bounds
        sequence = optimal_sequence(*before, foreseen.nodes, problem.tau, progress)
        return _plans(problem, sequence, time.perf_counter() - started)


def _candidates(
    ground: Ground, problem: MigrationProblem, projection: Projection, row: int
) -> list[Ints]:
    by_count = {}
    for boldness in _BOLDNESS:
        cuts = best_cuts(
            ground.work_before,
            ground.kept,
            problem.bounds,
            float(ground.limits[row]),
            problem.nodes,
            boldness * ground.gamma * projection.values[row],
            ground.scale,
        )
        by_count[tuple(cuts.tolist())] = cuts
    return list(by_count.values())


def _require_feasible_on(problem: MigrationProblem, numbers: Iterable[int]) -> None:
    parts = problem.work, problem.state, problem.owner, problem.present
    for nodes in numbers:
        require_feasible(MigrationProblem.of_owner(*parts, nodes, problem.tau))


def _plans(
    problem: MigrationProblem, assignments: list[Ints], seconds: float
) -> list[MigrationPlan]:
    """Measure each migration from the intervals that the one before left."""
    plans = []
    names, cuts = list(range(problem.present)), problem.bounds
    for after in assignments:
        later = match_nodes(problem.state_before, cuts, names, after)
        known = max(*names, *later) + 1
        owner = np.repeat(names, np.diff(cuts))
        target = len(after) - 1
        step = MigrationProblem.of_owner(
            problem.work, problem.state, owner, known, target, problem.tau
        )
        assignment = np.repeat(np.array(later, np.int32), np.diff(after))
        plans.append(measure(step, assignment, later, seconds / len(assignments)))
        names, cuts = later, after
    return plans
