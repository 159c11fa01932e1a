"""The JSON form of problems and plans of the numbers of nodes."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from algorithms.admission.scaling import QueryLoad, ScalingPlan, ScalingProblem
from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.lab.json_values import object_fields
from algorithms.vocabulary import Floats

_COSTS: Final = ("rate", "operator_s", "merge_s", "node_rate")
_COUNTS: Final = ("tasks", "aggregators")


def problem_from_json(data: object) -> ScalingProblem:
    """Return the problem of a JSON object. Raises `BadProblem` with the place.

    `streams` and `capacity` are optional: with them, the number of split nodes is planned.
    """
    row = object_fields(data, ("interval_s", "queries"), ("capacity", "streams"))
    queries = _mapping("queries", row["queries"])
    streams = row.get("streams")
    return ScalingProblem(
        [_query(name, value) for name, value in queries.items()],
        _number("interval_s", row["interval_s"]),
        _number("capacity", row.get("capacity", 0.0)),
        None if streams is None else _rates(_mapping("streams", streams)),
    )


def _mapping(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadProblem(where, "must be an object")
    return value


def _number(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadProblem(where, f"must be a number, not {value!r}")
    return value


def _query(name: str, value: object) -> QueryLoad:
    where = f"queries.{name}"
    row = _mapping(where, value)
    for key in row:
        if key not in (*_COSTS, *_COUNTS):
            known = ", ".join((*_COSTS, *_COUNTS))
            raise BadProblem(f"{where}.{key}", f"is unknown; known: {known}")
    for key in _COSTS:
        if key not in row:
            raise BadProblem(where, f"lacks {key}")
    rate, operator_s, merge_s, node_rate = (_number(f"{where}.{k}", row[k]) for k in _COSTS)
    tasks, aggregators = (_count(f"{where}.{k}", row.get(k, 0)) for k in _COUNTS)
    return QueryLoad(name, rate, operator_s, merge_s, node_rate, tasks, aggregators)


def _count(where: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadProblem(where, f"must be a whole number of at least 0, not {value!r}")
    return value


def _rates(streams: Mapping[str, Any]) -> Floats:
    """Return the rates of the streams by period; a stream with fewer periods keeps its last."""
    rows = [amounts(f"streams.{name}", rates) for name, rates in streams.items()]
    for name, rates in zip(streams, rows, strict=True):
        if not len(rates):
            raise BadProblem(f"streams.{name}", "has no rate")
    longest = max(map(len, rows), default=1)
    padded = [np.pad(rates, (0, longest - len(rates)), mode="edge") for rates in rows]
    return np.array(padded, np.float64).reshape(len(rows), longest)


def plan_to_json(problem: ScalingProblem, plan: ScalingPlan) -> dict[str, Any]:
    """Return the numbers of nodes by query; `split_nodes` only if it is planned.

    `tasks`, `aggregators`: what a query with present numbers has after the period.
    """
    queries = {
        query.name: {"query_nodes": scale.query_nodes, "aggregator_nodes": scale.aggregator_nodes}
        | ({"tasks": scale.tasks} if query.tasks else {})
        | ({"aggregators": scale.aggregators} if query.aggregators else {})
        for query, scale in zip(problem.queries, plan.queries, strict=True)
    }
    split = {} if plan.split_nodes is None else {"split_nodes": plan.split_nodes}
    return {"queries": queries} | split
