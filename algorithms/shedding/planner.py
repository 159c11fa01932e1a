"""The shedding planner: its algorithms, and the JSON form of its problems and plans."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.planner import Algorithm, Planner
from algorithms.shedding import formats
from algorithms.shedding.exact.algorithm import Exact, exact_plan_to_json
from algorithms.shedding.fit import report as fit
from algorithms.shedding.fit.central import CFit
from algorithms.shedding.fit.distributed import DFit
from algorithms.shedding.lp import Lp
from algorithms.shedding.plan_table import solver
from algorithms.vocabulary import Parameters

SHEDDING: Final = "shedding"


@dataclass(frozen=True)
class NoSettings(Parameters):
    """A shedding problem has no parameters of its own."""


def _plan_to_json(run: Any) -> dict[str, Any]:
    return formats.plan_to_json(run.plan)


def _exact_plan_to_json(run: Any) -> dict[str, Any]:
    return exact_plan_to_json(run.plan)


def _table_plan_to_json(run: Any) -> dict[str, Any]:
    return solver.table_plan_to_json(run.plan)


_ALGORITHMS: Final = (
    Algorithm("lp", "Optimum at the given rates", "offline", Lp),
    Algorithm(
        "solver", "Table of plans (Solver)", "offline", solver.Solver, report=_table_plan_to_json
    ),
    Algorithm(
        "solver_w",
        "Table of plans for expected rates (Solver-W)",
        "offline",
        solver.SolverW,
        read=solver.history_problem_from_json,
        report=_table_plan_to_json,
        plans_clusters=True,
    ),
    Algorithm("c_fit", "Feasible input tables (C-FIT)", "offline", CFit, report=fit.run_to_json),
    Algorithm(
        "d_fit",
        "Feasible input tables that nodes exchange (D-FIT)",
        "offline",
        DFit,
        report=fit.run_to_json,
    ),
    Algorithm(
        "exact", "Optimum or fair shares (exact)", "offline", Exact, report=_exact_plan_to_json
    ),
)


PLANNER: Final = Planner(
    name=SHEDDING,
    title="Load shedding in overloads",
    algorithms=_ALGORITHMS,
    problem=NoSettings,
    read=formats.problem_from_json,
    report=_plan_to_json,
    order=5,
)
