"""Checks of a migration problem's input; each names the invalid value and the reason."""

from typing import Any

import numpy as np

from algorithms.checks import amounts, as_integers, numbers_below
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats, Ints


def works(values: Any) -> Floats:
    """Return the work of each task as a new vector. Raises `BadProblem` without any task."""
    array = amounts("work", values)
    if not len(array):
        raise BadProblem("work", "names no task")
    return array


def interval_starts(starts: Any, tasks: int) -> Ints:
    """Return the first task of each present node: from 0, ascending, at most m."""
    array = as_integers("starts", starts)
    if not len(array):
        raise BadProblem("starts", "names no present node")
    if array[0] != 0:
        raise BadProblem("starts[0]", f"must be 0, where the tasks begin, not {array[0]}")
    falling = np.flatnonzero(np.diff(array) < 0)
    if len(falling):
        raise BadProblem(f"starts[{int(falling[0]) + 1}]", "must not fall: position order")
    if array[-1] > tasks:
        raise BadProblem(f"starts[{len(array) - 1}]", f"is beyond the {tasks} tasks")
    return array


def capacities_of(capacities: Any, present: int, nodes: int) -> Floats:
    """Return one capacity per node, present ones first; without capacities, ones."""
    count = max(present, nodes)
    if capacities is None:
        return np.ones(count)
    array = amounts("capacities", capacities)
    if len(array) != count:
        why = f"must name {count} nodes, the {present} present ones first, not {len(array)}"
        raise BadProblem("capacities", why)
    staying = int((array > 0).sum())
    if staying != nodes:
        why = f"{staying} are above 0, but {nodes} nodes are wanted (0 is for one that leaves)"
        raise BadProblem("capacities", why)
    return array


def owners(where: str, values: Any, tasks: int, present: int) -> Ints:
    """Return the present node of each task as a new vector."""
    array = numbers_below(where, values, present, "node")
    if len(array) != tasks:
        raise BadProblem(where, f"has {len(array)} entries for {tasks} tasks")
    return array
