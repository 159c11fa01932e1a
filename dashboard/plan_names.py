"""Names of plans as tables and charts have them."""

from collections.abc import Callable, Mapping
from typing import Any

from algorithms.errors import UnknownAlgorithm, UnknownPlanner
from algorithms.registry import algorithm
from dashboard.numbers import compact, milliseconds, percent, size

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "bytes": size,
    "moves": lambda value: f"{compact(value)} moves",
    "pause_ms": lambda value: f"{milliseconds(value)} of pauses",
    "share": lambda value: f"{percent(value)} of its bytes",
}


def title_of(planner: str, name: str) -> str:
    """Return the title of an algorithm, its name for one that is gone."""
    try:
        return algorithm(planner, name).title
    except (UnknownAlgorithm, UnknownPlanner):
        return name


def plan_name(planner: str, name: str, parameters: Mapping[str, Any]) -> str:
    """Return a plan's algorithm with its parameters: “Single source, nu 0.5”."""
    given = [f"{key} {_plain(value)}" for key, value in sorted(parameters.items())]
    return ", ".join([title_of(planner, name), *given])


def budget_name(budget: Mapping[str, float]) -> str:
    """Return a budget as a person reads it, empty for none: “at most 10 moves, 1.0 MB”."""
    told = [_WRITTEN[name](value) for name, value in budget.items() if name in _WRITTEN]
    return f"at most {', '.join(told)}" if told else ""


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
