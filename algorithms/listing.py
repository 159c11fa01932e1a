"""The list of planners, algorithms and parameters, as JSON values and as text."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import ParameterField

_TYPES = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def as_json(planners: Iterable[Planner]) -> dict[str, Any]:
    """Return planners, their algorithms and the parameters of each as JSON values."""
    return {
        "planners": [
            {
                "name": planner.name,
                "title": planner.title,
                "algorithms": [_algorithm(planner, algorithm) for algorithm in planner.algorithms],
            }
            for planner in planners
        ]
    }


def as_text(planners: Iterable[Planner]) -> str:
    """Return the same as text."""
    return "\n".join(line for planner in planners for line in _lines(planner))


def _algorithm(planner: Planner, algorithm: Algorithm) -> dict[str, Any]:
    return {
        "name": algorithm.name,
        "title": algorithm.title,
        "kind": algorithm.kind,
        "summary": algorithm.summary,
        "parameters": [_parameter(field) for field in planner.fields(algorithm)],
    }


def _parameter(field: ParameterField) -> dict[str, Any]:
    return asdict(field) | {"type": field.type.__name__, "choices": list(field.choices)}


def _lines(planner: Planner) -> list[str]:
    lines = [f"{planner.name}: {planner.title}"]
    for algorithm in planner.algorithms:
        lines += [
            "",
            f"  {algorithm.name} ({algorithm.kind}): {algorithm.title}",
            f"    {algorithm.summary}",
        ]
        lines += [f"    --param {_described(field)}" for field in planner.fields(algorithm)]
    return lines


def _described(field: ParameterField) -> str:
    facts = [_TYPES[field.type] + (f" [{field.unit}]" if field.unit else "")]
    if field.choices:
        facts = ["one of " + ", ".join(field.choices)]
    if field.minimum is not None:
        facts.append(f"at least {field.minimum:,.12g}")
    if field.maximum is not None:
        facts.append(f"at most {field.maximum:,.12g}")
    if field.optional:
        facts.append("or none")
    default = "none" if field.default is None else str(field.default).lower()
    return f"{field.name}={default}  ({', '.join(facts)}) {field.help}"
