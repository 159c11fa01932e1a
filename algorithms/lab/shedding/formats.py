"""The JSON form of shedding problems and plans."""

from collections.abc import Mapping
from typing import Any, Final

from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.shedding.network import ARROW, Network, Operator, OperatorKind
from algorithms.shedding.problem import SheddingPlan, SheddingProblem

_NEEDED: Final = ("nodes", "inputs", "operators", "outputs")
_OF_OPERATOR: Final = ("name", "node", "cost", "selectivity", "from")


def problem_from_json(data: object, _: object = None) -> SheddingProblem:
    """Build a problem from JSON values, as docs/algorithms.md shows them. Raises `BadProblem`."""
    fields = object_fields(data, _NEEDED, ("links", "floors"))
    inputs = _mapping(fields, "inputs")
    network = Network(
        _mapping(fields, "nodes"),
        tuple(inputs),
        _operators(fields["operators"]),
        _mapping(fields, "outputs"),
        {_pair(name): limit for name, limit in _mapping(fields, "links").items()},
        _mapping(fields, "floors"),
    )
    return SheddingProblem(network, inputs)


def plan_to_json(plan: SheddingPlan) -> dict[str, Any]:
    """Return a plan as JSON values."""
    return {
        "value": plan.outcome.value,
        "keep": dict(plan.keep),
        "loads": dict(plan.outcome.loads),
        "kept": dict(plan.outcome.kept),
    }


def problem_to_json(problem: SheddingProblem) -> dict[str, Any]:
    """Return the JSON values that `problem_from_json` reads."""
    network = problem.network
    return {
        "nodes": dict(network.nodes),
        "inputs": dict(problem.rates),
        "operators": [_operator_to_json(operator) for operator in network.operators],
        "outputs": dict(network.outputs),
        "links": {ARROW.join(pair): limit for pair, limit in network.links.items()},
        "floors": dict(network.floors),
    }


def _operator_to_json(operator: Operator) -> dict[str, Any]:
    return {
        "name": operator.name,
        "node": operator.node,
        "cost": operator.cost,
        "selectivity": operator.selectivity,
        "from": list(operator.sources),
        "kind": operator.kind.value,
        **({"windows": list(operator.windows)} if operator.windows else {}),
    }


def _mapping(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = fields.get(name, {})
    if not isinstance(value, Mapping):
        raise BadProblem(name, "must be an object of names and numbers")
    return dict(value)


def _operators(rows: object) -> tuple[Operator, ...]:
    if not isinstance(rows, list):
        raise BadProblem("operators", "must be a list")
    return tuple(_operator(index, row) for index, row in enumerate(rows))


def _operator(index: int, row: object) -> Operator:
    where = f"operators[{index}]"
    if not isinstance(row, Mapping):
        raise BadProblem(where, f"must be an object with {', '.join(_OF_OPERATOR)}")
    name = row.get("name")
    if isinstance(name, str) and name:
        where = f"operators.{name}"
    missing = [field for field in _OF_OPERATOR if field not in row]
    unknown = [str(field) for field in row if field not in (*_OF_OPERATOR, "kind", "windows")]
    if missing or unknown:
        what = f"lacks {', '.join(missing)}" if missing else f"has unknown {', '.join(unknown)}"
        raise BadProblem(where, what)
    _check_types(where, row)
    kind = row.get("kind", OperatorKind.CHAIN.value)
    if kind not in tuple(OperatorKind):
        raise BadProblem(f"{where}.kind", f"must be one of {', '.join(OperatorKind)}")
    return Operator(
        row["name"], row["node"], row["cost"], row["selectivity"], tuple(map(str, row["from"])),
        OperatorKind(kind), tuple(row.get("windows", ())),
    )  # fmt: skip


def _check_types(where: str, row: Mapping[str, Any]) -> None:
    for field in ("name", "node"):
        if not isinstance(row[field], str):
            raise BadProblem(f"{where}.{field}", f"must be text, not {row[field]!r}")
    for field, value in (("from", row["from"]), ("windows", row.get("windows", []))):
        if not isinstance(value, list):
            raise BadProblem(f"{where}.{field}", "must be a list")


def _pair(name: str) -> tuple[str, str]:
    first, _, second = name.partition(ARROW)
    return first, second
