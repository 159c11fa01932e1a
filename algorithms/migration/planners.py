"""The single-step planner as forms, API and command line offer it."""

import time
from dataclasses import dataclass, replace

from algorithms.migration.feasible import require_feasible
from algorithms.migration.keeping import assigned, grades_of
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan, measured
from algorithms.migration.single_step import best_parts
from algorithms.vocabulary import Parameters, Progress, silent


@dataclass(frozen=True)
class SingleStep(Parameters):
    """The fewest bytes moved now, section 3: optimal over all intervals and all nodes."""

    def solve(self, problem: MigrationProblem, progress: Progress = silent) -> MigrationPlan:
        """Plan one migration. Raises `InfeasibleTau`, which names the smallest feasible tau."""
        grades = grades_of(problem)
        require_feasible(problem, grades)
        started = time.perf_counter()
        parts = best_parts(problem.work_before, problem.state_before, problem.bounds, grades)
        assignment, nodes = assigned(problem, parts)
        seconds = time.perf_counter() - started
        progress(1.0)
        plan = measured(problem, assignment, nodes, seconds)
        return replace(plan, lower_bound=plan.cost)
