"""Migration problems from JSON values, and plans as JSON values."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.lab.migration.future.planners import ForeseenProblem, SequenceProblem
from algorithms.lab.migration.future.projection import Projection
from algorithms.lab.migration.future.transitions import Transitions
from algorithms.migration.problem import MigrationProblem
from algorithms.migration.result import MigrationPlan

_NEEDED: Final = ("starts", "work", "state", "nodes")


def problem_from_json(data: object, tau: float) -> MigrationProblem:
    """Build a problem from JSON values, as docs/algorithms.md shows them. Raises `BadProblem`.

    `{"starts": [0, 13], "work": [1, …], "state": [1, …], "nodes": 3}`, perhaps with `capacities`.
    """
    fields = object_fields(data, _NEEDED, ("capacities",))
    return _problem(fields, fields["nodes"], tau)


def sequence_from_json(data: object, tau: float) -> SequenceProblem:
    """Build the problem of a known sequence: as for one migration, but `nodes` is a list."""
    fields = object_fields(data, _NEEDED, ("capacities",))
    nodes = fields["nodes"]
    if not isinstance(nodes, list) or not nodes:
        raise BadProblem("nodes", "must be a list with the target number of each migration")
    steps = [_problem(fields, count, tau, f"nodes[{index}]") for index, count in enumerate(nodes)]
    return SequenceProblem(steps[0], tuple(step.nodes for step in steps))


def foreseen_from_json(data: object, tau: float) -> ForeseenProblem:
    """Build a problem with transitions: from a `history` of node numbers, or a `matrix`.

    `{"matrix": {"2": {"2": 0.3, "3": 0.7}, …}}` has the chance of each next number of nodes.
    `projection` is the output of `python -m workers.lab.precompute` for these tasks and
    transitions.
    """
    fields = object_fields(data, _NEEDED, ("capacities", "history", "matrix", "projection"))
    if ("history" in fields) == ("matrix" in fields):
        raise BadProblem("input", "needs either history (node numbers in turn) or matrix")
    problem = _problem(fields, fields["nodes"], tau)
    known = fields.get("projection")
    projection = None if known is None else Projection.from_json(known)
    return ForeseenProblem(problem, _transitions(fields), projection)


def _transitions(fields: Mapping[str, Any]) -> Transitions:
    if "history" in fields:
        if not isinstance(fields["history"], list):
            raise BadProblem("history", "must be a list of node numbers")
        return Transitions.from_history(fields["history"])
    matrix = fields["matrix"]
    if not isinstance(matrix, Mapping) or not all(isinstance(v, Mapping) for v in matrix.values()):
        raise BadProblem("matrix", "must be an object of objects: from, to, chance")
    return Transitions.from_matrix(matrix)


def plan_to_json(plan: MigrationPlan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    names = ("cost", "gain", "max_load", "lower_bound", "feasible", "seconds")
    measures = {name: getattr(plan, name) for name in names}
    return {"intervals": [list(run) for run in plan.intervals], **measures}


def sequence_to_json(plans: Sequence[MigrationPlan]) -> dict[str, Any]:
    """Return the plans of a sequence as JSON values, one entry per migration."""
    return {
        "intervals": [[list(run) for run in plan.intervals] for plan in plans],
        "costs": [plan.cost for plan in plans],
        "cost": sum(plan.cost for plan in plans),
        "max_loads": [plan.max_load for plan in plans],
        "feasible": all(plan.feasible for plan in plans),
        "seconds": sum(plan.seconds for plan in plans),
    }


def _problem(
    fields: Mapping[str, Any], nodes: Any, tau: float, where: str = "nodes"
) -> MigrationProblem:
    if isinstance(nodes, list):
        raise BadProblem(where, "must be one number; lists are for the algorithm sequence")
    parts = fields["work"], fields["state"], fields["starts"], nodes, tau
    return MigrationProblem.of(*parts, fields.get("capacities"))
