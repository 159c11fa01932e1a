"""The shedding planner with tables of plans and exact optima, and the JSON form."""

from typing import Final

from algorithms.lab.planner import JsonPlanner
from algorithms.lab.shedding import formats
from algorithms.lab.shedding.exact.algorithm import Exact, exact_plan_to_json
from algorithms.lab.shedding.fit.central import CFit
from algorithms.lab.shedding.fit.distributed import DFit
from algorithms.lab.shedding.fit.report import run_to_json
from algorithms.lab.shedding.plan_table import solver
from algorithms.planner import Algorithm
from algorithms.shedding import planner

_ADDED: Final = (
    Algorithm("solver", "Table of plans (Solver)", "offline", solver.Solver),
    Algorithm(
        "solver_w", "Table of plans for expected rates (Solver-W)", "offline", solver.SolverW
    ),
    Algorithm("c_fit", "Feasible input tables (C-FIT)", "offline", CFit),
    Algorithm("d_fit", "Feasible input tables that nodes exchange (D-FIT)", "offline", DFit),
    Algorithm("exact", "Optimum or fair shares (exact)", "offline", Exact),
)

PLANNER: Final = JsonPlanner.of(
    planner.PLANNER,
    _ADDED,
    read=formats.problem_from_json,
    report=lambda run: formats.plan_to_json(run.plan),
    reads={"solver_w": solver.history_problem_from_json},
    reports={
        "solver": lambda run: solver.table_plan_to_json(run.plan),
        "solver_w": lambda run: solver.table_plan_to_json(run.plan),
        "c_fit": run_to_json,
        "d_fit": run_to_json,
        "exact": lambda run: exact_plan_to_json(run.plan),
    },
)
