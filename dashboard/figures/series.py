"""Titles of an experiment's series."""

from algorithms.errors import PlanningError
from algorithms.registry import algorithm


def series_title(planner: str, name: str) -> str:
    """Return the title of the algorithm that a series is named for, else its name in words."""
    try:
        return algorithm(planner, name).title
    except PlanningError:
        return name.replace("_", " ")
