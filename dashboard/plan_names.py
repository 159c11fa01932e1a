"""Names of plans for tables and charts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from algorithms.registry import algorithm_title, parameter_titles
from algorithms.vocabulary import title_of_name
from controlplane.numbers import compact, lowered, milliseconds, percent, size
from controlplane.queries.key_groupings import value_text

_WRITTEN: Mapping[str, Callable[[float], str]] = {
    "bytes": size,
    "moves": lambda value: f"{compact(value)} moves",
    "pause_ms": lambda value: f"{milliseconds(value)} of pauses",
    "share": lambda value: f"{percent(value)} of its bytes",
}


def parameters_name(planner: str, algorithm: str, parameters: Mapping[str, Any]) -> str:
    """Return parameters as text, such as “uneven load allowed 0.5, seed 3”."""
    titled = titled_parameters(planner, algorithm, dict(sorted(parameters.items())))
    return ", ".join(f"{lowered(title)} {_value(planner, value)}" for title, value in titled)


def _value(planner: str, value: Any) -> str:
    """Return a value as text; a text names another algorithm, or a choice of words."""
    if isinstance(value, str):
        return lowered(algorithm_title(planner, value))
    return value_text(value)


def titled_parameters(
    planner: str, algorithm: str, parameters: Mapping[str, Any]
) -> list[tuple[str, Any]]:
    """Return parameters as titles and values; of unknown ones the words of their names."""
    titles = parameter_titles(planner, algorithm)
    return [(titles.get(name) or title_of_name(name), value) for name, value in parameters.items()]


def series_names(plans: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """Return distinct names: the title, and the parameters that differ between its plans."""
    return [
        ", ".join(
            filter(
                None,
                [
                    algorithm_title(*plan[:2]),
                    parameters_name(*plan[:2], _distinguishing(plan, plans)),
                ],
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
