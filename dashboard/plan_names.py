"""Names of plans for tables and charts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from algorithms.registry import algorithm_title
from dashboard.numbers import compact, milliseconds, percent, size

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "bytes": size,
    "moves": lambda value: f"{compact(value)} moves",
    "pause_ms": lambda value: f"{milliseconds(value)} of pauses",
    "share": lambda value: f"{percent(value)} of its bytes",
}


def parameters_name(parameters: Mapping[str, Any]) -> str:
    """Return parameters as text, such as “nu 0.5, seed 3”."""
    return ", ".join(f"{key} {_plain(value)}" for key, value in sorted(parameters.items()))


def series_names(plans: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return distinct names: the title, and the parameters that differ between its plans."""
    return [
        ", ".join(
            filter(
                None, [algorithm_title(*plan[:2]), parameters_name(_distinguishing(plan, plans))]
            )
        )
        for plan in plans
    ]


def _distinguishing(
    plan: tuple[str, str, Mapping[str, Any]], plans: Sequence[tuple[str, str, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Return the parameters that differ between plans of the same algorithm."""
    alike = [other[2] for other in plans if other[:2] == plan[:2]]
    return {
        key: value
        for key, value in plan[2].items()
        if any(other.get(key) != value for other in alike)
    }


def budget_name(budget: Mapping[str, float]) -> str:
    """Return a budget as text, such as “at most 10 moves, 1.0 MB”; "" without one."""
    limits = [_WRITTEN[name](value) for name, value in budget.items() if name in _WRITTEN]
    return f"at most {', '.join(limits)}" if limits else ""


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
